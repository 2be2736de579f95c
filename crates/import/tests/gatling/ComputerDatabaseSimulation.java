package computerdatabase;

import static io.gatling.javaapi.core.CoreDsl.*;
import static io.gatling.javaapi.http.HttpDsl.*;

import io.gatling.javaapi.core.*;
import io.gatling.javaapi.http.*;
import java.util.concurrent.ThreadLocalRandom;

/** The advanced tutorial: chains of their own, a feeder, a loop with its counter, checks and two populations. */
public class ComputerDatabaseSimulation extends Simulation {

  FeederBuilder<String> feeder = csv("search.csv").random();

  ChainBuilder search = exec(
    http("Home").get("/"),
    pause(1),
    feed(feeder),
    http("Search")
      .get("/computers?f=#{searchCriterion}")
      .check(jsonPath("$.items[0].id").saveAs("computerId")),
    pause(1),
    http("Select")
      .get("/computers/#{computerId}")
      .check(status().is(200)),
    pause(1)
  );

  // repeat is a loop resolved at runtime; the counter's name is n
  ChainBuilder browse = repeat(4, "n").on(
    exec(http("Page #{n}").get("/computers?p=#{n}")),
    pause(1)
  );

  ChainBuilder edit = tryMax(2)
    .on(
      exec(http("Form").get("/computers/new")),
      pause(1),
      http("Post")
        .post("/computers")
        .formParam("name", "Beautiful Computer")
        .formParam("introduced", "2012-05-30")
        .check(
          status().is(session -> 200 + ThreadLocalRandom.current().nextInt(2))
        )
    )
    .exitHereIfFailed();

  HttpProtocolBuilder httpProtocol = http.baseUrl("http://127.0.0.1:8080")
    .acceptHeader("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
    .userAgentHeader("Mozilla/5.0 (Macintosh; Intel Mac OS X 10.8; rv:16.0) Gecko/20100101 Firefox/16.0");

  ScenarioBuilder users = scenario("Users").exec(search, browse);
  ScenarioBuilder admins = scenario("Admins").exec(search, browse, edit);

  {
    setUp(
      users.injectOpen(rampUsers(10).during(10)),
      admins.injectOpen(rampUsers(2).during(10))
    ).protocols(httpProtocol);
  }
}
