import http from 'k6/http';
import { sleep } from 'k6';

export const options = {
  discardResponseBodies: true,
  scenarios: {
    readers: {
      executor: 'constant-arrival-rate',
      exec: 'read',
      rate: 30,
      timeUnit: '1s',
      duration: '30s',
      preAllocatedVUs: 50,
      tags: { kind: 'read' },
    },
    writers: {
      executor: 'constant-arrival-rate',
      exec: 'write',
      rate: 60,
      timeUnit: '1m',
      duration: '30s',
      preAllocatedVUs: 5,
      maxVUs: 10,
      env: { PLACE: 'north' },
    },
  },
  thresholds: {
    'http_req_duration{scenario:readers}': [{ threshold: 'p(95)<250', abortOnFail: true, delayAbortEval: '10s' }],
    'http_req_failed{scenario:writers}': ['rate<0.05'],
    http_reqs: ['count>100'],
  },
};

export function read() {
  http.get('http://127.0.0.1:8080/news');
}

export function write() {
  http.post('http://127.0.0.1:8080/news/' + __ENV.PLACE, 'it rains', { headers: { 'Content-Type': 'text/plain' } });
  sleep(0.25);
}
