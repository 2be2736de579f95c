import { sleep } from 'k6';
import { addItem, getCart } from './lib/api.js';
import * as api from './lib/api.js';
import http from 'k6/http';

const options = { vus: 3, duration: '1m' };
const ITEMS = ['tea', 'cup'];

function checkout() {
  getCart(7);
  for (const item of ITEMS) {
    addItem(7, item);
  }
  addItem(7, 'spoon', 4);
  http.get(`${api.BASE}/checkout`);
  sleep(1);
}

export { checkout as default, options };
