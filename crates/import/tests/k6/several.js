import http from 'k6/http';

export const options = {
  scenarios: {
    browse: { executor: 'constant-vus', vus: 6, duration: '1m', exec: 'browse' },
    buy: { executor: 'constant-vus', vus: 2, duration: '30s', startTime: '15s', exec: 'buy' },
    report: { executor: 'constant-arrival-rate', rate: 1, duration: '1m', preAllocatedVUs: 1, exec: 'report' },
  },
};

export function browse() {
  http.get('http://127.0.0.1:8080/browse');
}

export function buy() {
  http.post('http://127.0.0.1:8080/buy', JSON.stringify({ item: 1 }), { headers: { 'content-type': 'application/json' } });
}

export function report() {
  http.get('http://127.0.0.1:8080/report');
}
