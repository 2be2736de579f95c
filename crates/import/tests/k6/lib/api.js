import http from 'k6/http';
import { check } from 'k6';

export const BASE = 'http://127.0.0.1:8080';

function call(method, path, body, extra = {}) {
  const params = Object.assign({ headers: { 'Content-Type': 'application/json' } }, extra);
  return http.request(method, `${BASE}${path}`, body ? JSON.stringify(body) : null, params);
}

export const getCart = (id) => call('GET', `/carts/${id}`);

export function addItem(cart, item, count = 1) {
  const res = call('POST', `/carts/${cart}/items`, { item, count });
  check(res, { 'item was added': (r) => r.status >= 200 && r.status < 300 });
  return res;
}
