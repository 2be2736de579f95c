import http from 'k6/http';

const base = { host: 'http://127.0.0.1:8080', version: 2 };
const headers = { 'X-Version': base.version };
const ids = [3, 5];

export const options = {
  vus: 1,
  iterations: 1,
  thresholds: {
    'http_req_duration{name:item}': ['avg<300'],
    'http_req_duration{name:http://127.0.0.1:8080/named/${}}': ['max<3000'],
  },
};

export default function () {
  const url = `${base.host}/v${base.version}/items`;
  http.get(url, { headers, tags: { name: 'item' } });
  http.head(url);
  http.options(url, null, { headers });
  http.put(`${url}/${ids[0]}`, JSON.stringify({ name: 'cup' }), { headers: { 'Content-Type': 'application/json' } });
  http.patch(`${url}/${ids[1]}`, JSON.stringify({ name: 'mug', size: [1, 2] }), { headers });
  http.del(`${url}/${ids[0]}`, null, { headers });
  http.request('PURGE', url + '?all=' + true);
  http.get(http.url`http://127.0.0.1:8080/named/${ids[1]}`);
  http.get(`${base.host}/search?q=${encodeURIComponent('tea & milk')}&page=${1 + 1}#top`);
}
