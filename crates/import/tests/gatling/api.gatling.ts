import {
  scenario, simulation, constantUsersPerSec, rampUsersPerSec, nothingFor, group, jsonPath, jmesPath, status,
  StringBody, getParameter, global, details, header, bodyString, responseTimeInMillis, arrayFeeder, feed,
} from "@gatling.io/core";
import { http } from "@gatling.io/http";

const base: string = getParameter("baseUrl", "http://127.0.0.1:8080");
const accounts = arrayFeeder([
  { user: "ann", password: "a-1" },
]).circular();

const logIn = group("session").on(
  feed(accounts),
  http("log in")
    .post("/auth")
    .body(StringBody('{"user":"#{user}","password":"#{password}"}'))
    .asJson()
    .check(
      status().is(200),
      jsonPath("$.token").saveAs("token"),
      header("x-trace").saveAs("trace"),
      responseTimeInMillis().lte(800)
    )
);

const orders = {
  list: http("list")
    .get("/orders")
    .queryParamMap({ page: 1, q: "a b" })
    .header("Authorization", "Bearer #{token}")
    .check(jmesPath("items[1].id").saveAs("id"), jsonPath("$.user.name").is("Ann")),
  change: http("change")
    .put("/orders/#{id}")
    .headers({ Authorization: "Bearer #{token}", "X-Trace": "#{trace}" })
    .body(StringBody(`{"open":false}`))
    .asJson()
    .check(bodyString().exists(), status().in(200, 204)),
};

export default simulation((setUp) => {
  setUp(
    scenario("orders")
      .exec(logIn, orders.list)
      .pause(1, 3)
      .exec(orders.change)
      .injectOpen(
        nothingFor(5),
        rampUsersPerSec(1).to(5).during({ amount: 1, unit: "minutes" }),
        constantUsersPerSec(5).during(30)
      )
  )
    .protocols(http.baseUrl(base).contentTypeHeader("application/json"))
    .assertions(
      global().responseTime().percentile3().lt(800),
      global().failedRequests().percent().lte(1.5),
      details("session", "log in").responseTime().mean().lt(200)
    )
    .maxDuration({ amount: 10, unit: "minutes" });
});
