import http from 'k6/http';

export const options = {
  scenarios: {
    rush: {
      executor: 'ramping-arrival-rate',
      startRate: 300,
      timeUnit: '1m',
      preAllocatedVUs: 20,
      stages: [
        { target: 300, duration: '1m' },
        { target: 600, duration: '2m' },
        { target: 1200, duration: '0s' },
        { target: 1200, duration: '30s' },
        { target: 60, duration: '1m' },
      ],
    },
  },
};

export default () => {
  http.get('http://127.0.0.1:8080/rush', { responseCallback: http.expectedStatuses(200, { min: 300, max: 304 }) });
};
