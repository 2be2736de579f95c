import { scenario, simulation, stressPeakUsers, rampUsers, during, exec, pause, status, bodyString } from "@gatling.io/core";
import { http, addCookie, Cookie } from "@gatling.io/http";

function visit(path) {
  return exec(http(`GET ${path}`).get(path).check(status().not(500)));
}

export default simulation((setUp) => {
  const first = scenario("first").exec(visit("/a"), visit("/b"));
  const second = scenario("second").exec(visit("/c")).pause(1).exec(http("PUT /d").put("/d"));

  setUp(
    first.injectOpen(stressPeakUsers(100).during(20)),
    second.injectOpen(rampUsers(20).during(20))
  ).protocols(http.baseUrl("http://127.0.0.1:8080"));
});
