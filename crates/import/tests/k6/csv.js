import http from 'k6/http';
import papaparse from 'https://jslib.k6.io/papaparse/5.1.1/index.js';
import { SharedArray } from 'k6/data';
import { scenario } from 'k6/execution';

const accounts = new SharedArray('accounts', () => papaparse.parse(open('./accounts.csv'), { header: true }).data);

export const options = {
  scenarios: {
    each: { executor: 'shared-iterations', vus: 1, iterations: 2, maxDuration: '1m' },
  },
};

export default function () {
  const account = accounts[scenario.iterationInTest];
  http.get('http://127.0.0.1:8080/me?user=' + account.name, { headers: { 'X-Token': account.token } });
}
