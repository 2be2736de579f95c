import static io.gatling.javaapi.core.CoreDsl.*;
import static io.gatling.javaapi.http.HttpDsl.*;

import io.gatling.javaapi.core.*;
import io.gatling.javaapi.http.*;
import java.time.Duration;

public class Closed extends Simulation {
  FeederBuilder<Object> users = jsonFile("users.json").circular();

  ScenarioBuilder readers = scenario("readers").feed(users)
    .exec(http("read").get("/read/#{name}/#{id}").check(regex("\"token\":\"([^\"]+)\"").saveAs("token")))
    .exec(http("follow").get("/follow/#{token}"))
    .pause(Duration.ofMillis(200), Duration.ofMillis(400));

  ScenarioBuilder writers = scenario("writers")
    .exec(http("write").post("/write").formParam("a", "x y").check(substring("token"), substring("error").notExists()));

  {
    setUp(
      readers.injectClosed(rampConcurrentUsers(1).to(10).during(60), constantConcurrentUsers(10).during(60)),
      writers.injectClosed(constantConcurrentUsers(2).during(120))
    ).protocols(http.baseUrl("http://127.0.0.1:8080").disableFollowRedirect());
  }
}
