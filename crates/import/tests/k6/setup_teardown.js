import http from 'k6/http';
import { check } from 'k6';

const BASE = 'http://127.0.0.1:8080';

export function setup() {
  const res = http.post(`${BASE}/session`, JSON.stringify({ user: 'admin' }));
  check(res, { 'logged in': (r) => r.status === 200 });
  return { path: '/reports', page: 3, token: res.json('token'), unread: res.json('id') };
}

export default function (data) {
  http.get(`${BASE}${data.path}?page=${data.page}`, {
    headers: { Authorization: `Bearer ${data.token}` },
  });
}

export function teardown(data) {
  http.del(`${BASE}/session`, null, { headers: { Authorization: `Bearer ${data.token}` } });
}

export function handleSummary(data) {
  return { 'summary.json': JSON.stringify(data) };
}
