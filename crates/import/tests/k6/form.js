import http from 'k6/http';
import { check } from 'k6';

export default function () {
  const res = http.post(
    'http://127.0.0.1:8080/form',
    { title: 'a & b', id: 5, custname: 'Ann Example' },
    {
      cookies: { session: 'abc', theme: { value: 'dark', replace: true } },
      timeout: '10s',
      redirects: 0,
      headers: { Accept: 'text/html' },
    }
  );
  check(res, {
    'no error': (r) => r.status < 400,
    'says something': (r) => r.body.includes('items') && !r.body.includes('exception'),
  });
  http.get('http://me:secret@127.0.0.1:8080/private', { timeout: 2500 });
}
