import java.time.Duration;
import java.util.*;

import io.gatling.javaapi.core.*;
import io.gatling.javaapi.http.*;

import static io.gatling.javaapi.core.CoreDsl.*;
import static io.gatling.javaapi.http.HttpDsl.*;

// As the recorder writes it.
public class Recorded extends Simulation {

  private HttpProtocolBuilder httpProtocol = http
    .baseUrl("http://127.0.0.1:8080")
    .inferHtmlResources(AllowList(), DenyList(".*\\.js", ".*\\.css", ".*\\.woff2"))
    .acceptHeader("*/*")
    .acceptEncodingHeader("gzip, deflate");

  private Map<CharSequence, String> headers_0 = Map.ofEntries(
    Map.entry("Upgrade-Insecure-Requests", "1"),
    Map.entry("Accept", "text/html")
  );

  private Map<CharSequence, String> headers_2 = Map.of("Origin", "http://127.0.0.1:8080");

  private ScenarioBuilder scn = scenario("Recorded")
    .exec(
      http("request_0")
        .get("/")
        .headers(headers_0)
        .resources(
          http("request_1").get("/style.css"),
          http("request_1b").get("/logo.png")
        )
    )
    .pause(4)
    .exec(
      http("request_2")
        .post("/login")
        .headers(headers_2)
        .formParam("user", "ann")
        .formParam("password", "a b&c")
        .check(status().is(200))
    );

  {
	  setUp(scn.injectOpen(atOnceUsers(1))).protocols(httpProtocol);
  }
}
