import http, { RefinedResponse, ResponseType } from 'k6/http';
import { check } from 'k6';
import type { Options } from 'k6/options';

interface Pizza {
  name: string;
  size?: number;
}

export const options: Options = {
  scenarios: {
    each: { executor: 'per-vu-iterations', vus: 2, iterations: 3 },
  },
};

const order = (pizza: Pizza): RefinedResponse<ResponseType | undefined> =>
  http.post('http://127.0.0.1:8080/pizzas', JSON.stringify(pizza as object), {
    headers: { 'Content-Type': 'application/json' },
  });

export default function (): void {
  const res = order({ name: 'Margherita', size: 30 })!;
  check(res, { ordered: (r) => r.status === 200 });
}
