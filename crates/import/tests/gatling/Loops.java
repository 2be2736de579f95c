import static io.gatling.javaapi.core.CoreDsl.*;
import static io.gatling.javaapi.http.HttpDsl.*;

import io.gatling.javaapi.core.*;
import io.gatling.javaapi.http.*;
import java.util.List;

public class Loops extends Simulation {
  HttpProtocolBuilder protocol = http.baseUrl("http://127.0.0.1:8080/v1");

  ScenarioBuilder scn = scenario("loops")
    .repeat(3).on(exec(http("again").get("/again")).pause(1, 2))
    .repeat(2, "i").on(exec(http("turn #{i}").get("/turns/#{i}")))
    .foreach(List.of("a", "b"), "letter").on(exec(http("letter").get("/letters/#{letter}")))
    .exec(session -> session.set("more", "yes").set("times", 2))
    .repeat("#{times}").on(exec(http("set").get("/set")))
    .group("outer").on(group("inner").on(exec(http("deep").get("/deep"))));

  {
    setUp(scn.injectOpen(atOnceUsers(2), nothingFor(Duration.ofSeconds(5)), rampUsers(6).during(3)))
      .protocols(protocol)
      .assertions(details("outer", "inner", "deep").responseTime().max().lt(500));
  }
}
