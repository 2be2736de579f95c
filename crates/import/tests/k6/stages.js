import http from 'k6/http';
import { check, sleep } from 'k6';

export const options = {
  stages: [
    { duration: '30s', target: 20 },
    { duration: '1m30s', target: 10 },
    { duration: '20s', target: 0 },
  ],
  thresholds: {
    http_req_failed: ['rate<0.01'],
    http_req_duration: ['p(95)<500', 'p(99.9)<2000'],
    checks: ['rate>0.95'],
  },
};

export default function () {
  const res = http.get('http://127.0.0.1:8080/pizzas?size=large');
  check(res, { 'status was 200': (r) => r.status == 200 });
  sleep(0.5);
}
