import static io.gatling.javaapi.core.CoreDsl.*;
import static io.gatling.javaapi.http.HttpDsl.*;

import io.gatling.javaapi.core.*;
import io.gatling.javaapi.http.*;

public class Staircase extends Simulation {
  static final class Api {
    static final String ROOT = "/api/" + 2;
    static ChainBuilder one = exec(http("one").get(ROOT + "/one").check(bodyString().saveAs("all"), header("X-Trace").is("trace-1")));
    static ChainBuilder two = exec(http("two").post(ROOT + "/two").body(StringBody("#{all}")).header("Content-Type", "text/plain"));
  }

  ScenarioBuilder scn = scenario("staircase").exec(Api.one).exitBlockOnFail().on(exec(Api.two)).exec(Api.one);

  {
    setUp(scn.injectOpen(
      incrementUsersPerSec(5.0).times(3).eachLevelLasting(10).separatedByRampsLasting(10).startingFrom(10),
      constantUsersPerSec(20).during(15).randomized()
    ).protocols(http.baseUrls("http://127.0.0.1:8080", "http://127.0.0.1:8081")));
  }
}
