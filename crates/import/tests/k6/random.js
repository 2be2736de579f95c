import http from 'k6/http';
import { sleep } from 'k6';
import { randomIntBetween, randomItem, randomString, uuidv4 } from 'https://jslib.k6.io/k6-utils/1.4.0/index.js';

const colours = ['red', 'green', 'blue'];

export default function () {
  const id = randomIntBetween(1, 50);
  http.get(`http://127.0.0.1:8080/items?random=${id}`);
  http.get(`http://127.0.0.1:8080/again?random=${id}`);
  http.post('http://127.0.0.1:8080/orders', JSON.stringify({ uuid: uuidv4(), random: randomString(8), weight: 2 }), {
    headers: { 'Content-Type': 'application/json', 'X-Random': randomItem(colours) },
  });
  const colour = colours[Math.floor(Math.random() * colours.length)];
  http.get(`http://127.0.0.1:8080/colours?random=${colour}`);
  http.get(`http://127.0.0.1:8080/now?t=${Date.now()}`);
  sleep(Math.random() * 0.2);
  sleep(randomIntBetween(0, 1));
}
