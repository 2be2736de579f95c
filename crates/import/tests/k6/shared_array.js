import http from 'k6/http';
import { SharedArray } from 'k6/data';

const users = new SharedArray('users', function () {
  return JSON.parse(open('./users.json'));
});

export const options = { vus: 2, iterations: 4 };

export default function () {
  const user = users[__ITER % users.length];
  http.post('http://127.0.0.1:8080/login', JSON.stringify({ name: user.username, password: user.password, level: user.level }), {
    headers: { 'Content-Type': 'application/json' },
  });
  http.get(`http://127.0.0.1:8080/cities/${user.address.city}`);
  http.post('http://127.0.0.1:8080/all', JSON.stringify(user));
  http.get(`http://127.0.0.1:8080/count/${users.length}`);
}
