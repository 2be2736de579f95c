import http from 'k6/http';
import ws from 'k6/ws';
import { browser } from 'k6/browser';
import { Trend, Counter } from 'k6/metrics';
import { check, group, sleep } from 'k6';
import exec from 'k6/execution';
import crypto from 'k6/crypto';
import { missing } from './missing.js';

const latency = new Trend('latency', true);
const errors = new Counter('errors');
const jar = new http.CookieJar();
http.setResponseCallback(http.expectedStatuses(200));

export const options = {
  vus: 1,
  iterations: 1,
  rps: 50,
  hosts: { 'a.test': '127.0.0.1' },
  summaryTrendStats: ['avg', 'p(99)'],
  insecureSkipTLSVerify: true,
  ext: { loadimpact: { name: 'x' } },
  thresholds: {
    latency: ['p(95)<100'],
    iteration_duration: ['avg<1000'],
    'http_req_duration{status:200}': ['p(95)<100'],
    'http_req_duration{name:nobody}': ['p(95)<100'],
    'http_req_duration{scenario:nobody}': ['p(95)<100'],
    http_req_failed: ['value<1'],
  },
};

export function unused() {
  http.get('http://127.0.0.1:8080/unused');
}

export default function (data) {
  const url = 'http://127.0.0.1:8080';
  const res = http.get(`${url}/start`, {
    tags: { name: 'start', kind: 'page' },
    responseType: 'text',
    compression: 'gzip',
    auth: 'digest',
    jar,
    redirects: 2,
    headers: { Connection: 'close', 'X-A': data.token },
    timeout: 'soon',
  });
  latency.add(res.timings.waiting);
  errors.add(1);
  console.log(`status ${res.status}`);
  check(res, {
    'fast enough': (r) => r.timings.duration < 200,
    'title is right': (r) => r.html().find('title').text() === 'Shop',
    'wild': (r) => r.json('items.#.id').length === 3,
    'protocol': (r) => r.proto === 'HTTP/2.0',
    'either': (r) => r.body.includes('a') || r.status === 200,
  });
  const doc = res.html();
  doc.find('a').first();
  res.submitForm({ fields: { name: 'x' } });
  res.clickLink({ selector: 'a' });
  http.cookieJar().set(url, 'a', 'b');
  const socket = ws.connect('ws://127.0.0.1:8080/ws', null, function (socket) {
    socket.on('open', () => socket.send('hi'));
  });
  const page = browser.newPage();
  missing(url);
  http.get(unknownVariable + '/path');
  http.post(`${url}/upload`, { file: http.file(open('./users.json'), 'users.json') });
  http.post(`${url}/signed`, crypto.hmac('sha256', 'key', 'text', 'hex'));
  http.get(`${url}/date/${new Date().toISOString()}`);
  http.get(`${url}/vu/${__VU}/${__VU * 2}/${__ITER}`);
  for (let i = 0; i < res.json('count'); i++) {
    http.get(`${url}/counted`);
  }
  try {
    http.get(`${url}/tried`);
  } catch (error) {
    http.get(`${url}/caught`);
  } finally {
    http.get(`${url}/finally`);
  }
  if (res.status !== 200) {
    http.get(`${url}/recover`);
  }
  const page_number = cond(res) ? 1 : 2;
  http.get(`${url}/tagged`, makeParams`x`);
  sleep(data.pause);
  debugger;
  setTimeout(() => console.log('later'), 100);
  exec.test.abort('enough');
}

function* generated() {
  yield 1;
}
