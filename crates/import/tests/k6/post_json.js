import http from 'k6/http';
import { check } from 'k6';

export const options = { vus: 2, iterations: 10 };

const BASE_URL = 'http://127.0.0.1:8080';

export default function () {
  const payload = JSON.stringify({
    email: 'user@example.test',
    password: 'not a "secret"',
    tags: ['new', 'paid'],
    age: 31,
    active: true,
    nothing: null,
  });
  const params = {
    headers: {
      'Content-Type': 'application/json',
      'X-Client': 'load',
    },
  };
  const res = http.post(`${BASE_URL}/login`, payload, params);
  check(res, {
    'is status 200': (r) => r.status === 200,
    'has a token': (r) => r.json('token') !== undefined,
    'is of the user': (r) => r.json().user.name === 'Ann',
    'body size is not zero': (r) => r.body.length > 0,
  });
  // A text that is written by hand, without a content type.
  http.post(BASE_URL + '/raw', 'just ${text}');
}
