import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 5, duration: '10s' };

export default function () {
  const responses = http.batch([
    ['GET', 'http://127.0.0.1:8080/style.css', null, { tags: { name: 'style' } }],
    ['POST', 'http://127.0.0.1:8080/beacon', { seen: 'yes' }],
    'http://127.0.0.1:8080/logo.png',
  ]);
  check(responses[0], { 'style is there': (res) => res.status === 200 });

  const named = http.batch({
    front: { method: 'GET', url: 'http://127.0.0.1:8080/front', params: { headers: { 'X-Part': 'front' } } },
    back: 'http://127.0.0.1:8080/back',
  });
  check(named.front, { 'front is there': (res) => res.status === 200 });
  check(named['back'], { 'back is there': (res) => [200, 204].includes(res.status) });
}
