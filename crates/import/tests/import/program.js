import { Api } from './api.js';

const api = Api('http://127.0.0.1:8080');

export default function () {
  api.list();
}
