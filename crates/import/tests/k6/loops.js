import http from 'k6/http';
import { check, sleep } from 'k6';

const pages = { front: '/', about: '/about' };
const withAdmin = false;

export const options = { vus: 1, iterations: 1, userAgent: 'loops/1.0', maxRedirects: 3 };

export default function () {
  for (let i = 1; i <= 3; i++) {
    http.get(`http://127.0.0.1:8080/page/${i}`);
  }
  for (let i = 0; i < 4; i++) {
    http.get('http://127.0.0.1:8080/again');
    sleep(0.1);
  }
  for (const [name, path] of Object.entries(pages)) {
    http.get(`http://127.0.0.1:8080${path}`, { tags: { name } });
  }
  ['a', 'b'].forEach((letter, index) => {
    const res = http.get(`http://127.0.0.1:8080/letters/${letter}${index}`);
    check(res, { ok: (r) => r.status === 200 });
  });
  if (withAdmin) {
    http.get('http://127.0.0.1:8080/admin');
  } else {
    http.get('http://127.0.0.1:8080/guest');
  }
  const res = http.get('http://127.0.0.1:8080/me');
  if (res.json('user.name') === 'Ann') {
    http.get('http://127.0.0.1:8080/ann');
  } else {
    http.get('http://127.0.0.1:8080/other');
  }
  if (res.status !== 200) {
    return;
  }
  http.get('http://127.0.0.1:8080/last');
}
