import http from 'k6/http';
import { check } from 'k6';
import { findBetween } from 'https://jslib.k6.io/k6-utils/1.2.0/index.js';
import encoding from 'k6/encoding';

export default function () {
  const first = http.get('http://127.0.0.1:8080/first');
  const { id, user } = first.json();
  const trace = first.headers['X-Trace'];
  const name = findBetween(first.body, '"name":"', '"');
  check(first, {
    'is JSON': (r) => r.headers['Content-Type'] === 'application/json',
    'has items': (r) => r.json('items').length > 0,
    'second is 2': (r) => r.json('items.1.id') === 2,
    'name matches': (r) => /Ann|Bob/.test(r.body),
  });
  const credentials = encoding.b64encode('ann:pw');
  http.get(`http://127.0.0.1:8080/second/${id}/${user.name}`, {
    headers: { 'X-Trace': trace, 'X-Name': name, Authorization: `Basic ${credentials}` },
  });
  http.post('http://127.0.0.1:8080/third', JSON.stringify({ token: first.json('token'), of: `user ${user.name}` }), {
    headers: { 'Content-Type': 'application/json' },
  });
  http.get('http://127.0.0.1:8080' + first.json('next'));
}
