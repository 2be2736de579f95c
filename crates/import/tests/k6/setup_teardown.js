import http from 'k6/http';

const BASE = 'http://127.0.0.1:8080';

export function setup() {
  const res = http.post(`${BASE}/session`, JSON.stringify({ user: 'admin' }));
  return { path: '/reports', page: 3, token: res.json('token') };
}

export default function (data) {
  http.get(`${BASE}${data.path}?page=${data.page}`);
}

export function teardown(data) {
  http.del(`${BASE}/session`);
}

export function handleSummary(data) {
  return { 'summary.json': JSON.stringify(data) };
}
