import { scenario, simulation, atOnceUsers, exec, pause } from "@gatling.io/core";
import { http } from "@gatling.io/http";

export default simulation((setUp) => {
  const httpProtocol = http
    .baseUrl("http://127.0.0.1:8080")
    .acceptHeader("text/html,application/xhtml+xml")
    .userAgentHeader("Mozilla/5.0");

  const users = scenario("Users").exec(
    http("Home").get("/"),
    pause(1),
    http("Search").get("/computers").queryParam("f", "macbook"),
    pause({ amount: 500, unit: "milliseconds" }),
    http("Select").get(`/computers/${2 * 3}`),
    http("Post").post("/computers").formParamMap({ name: "Beautiful Computer", company: "37" })
  );

  setUp(users.injectOpen(atOnceUsers(3))).protocols(httpProtocol);
});
