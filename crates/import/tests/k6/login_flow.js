import http from 'k6/http';
import { check, group, sleep, fail } from 'k6';

export const options = {
  scenarios: {
    shoppers: {
      executor: 'ramping-vus',
      startVUs: 0,
      stages: [
        { duration: '20s', target: 10 },
        { duration: '10s', target: 0 },
      ],
      gracefulRampDown: '0s',
    },
  },
  thresholds: {
    'http_req_duration{group:::orders}': ['p(95)<400'],
    'http_req_duration{expected_response:true}': ['p(90)<300'],
  },
};

const BASE = __ENV.BASE_URL || 'http://127.0.0.1:8080';

export default function () {
  let token;

  group('login', () => {
    const res = http.post(`${BASE}/auth`, { user: 'ann', password: 'pw' });
    if (!check(res, { 'logged in': (r) => r.status === 200 && r.json('token') !== '' })) {
      fail('could not log in');
    }
    token = res.json('token');
  });

  const auth = {
    headers: { Authorization: `Bearer ${token}` },
  };

  group('orders', function () {
    const created = http.post(`${BASE}/orders`, JSON.stringify({ item: 'tea', count: 2 }), auth);
    const id = created.json().id;
    http.get(`${BASE}/orders/${id}`, auth);
    const items = http.get(`${BASE}/orders/${id}/items`, auth);
    http.del(`${BASE}/items/${items.json('items.0.id')}`, null, auth);
  });

  sleep(1);
}
