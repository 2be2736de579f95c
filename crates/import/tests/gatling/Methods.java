import static io.gatling.javaapi.core.CoreDsl.*;
import static io.gatling.javaapi.http.HttpDsl.*;

import io.gatling.javaapi.core.*;
import io.gatling.javaapi.http.*;
import java.util.Map;

public class Methods extends Simulation {

  private static final String BASE = System.getProperty("baseUrl", "http://127.0.0.1:8080");
  private static final int USERS = Integer.getInteger("users", 2);
  private static final Map<String, String> HEADERS = Map.of("X-Client", "load", "Accept", "application/json");
  private static final Map<CharSequence, String> JSON = Map.ofEntries(
    Map.entry("Content-Type", "application/json"));

  private static ChainBuilder remove(int id) {
    return exec(http("remove " + id).delete("/items/" + id).check(status().in(200, 204)));
  }

  private final ScenarioBuilder all;

  public Methods() {
    all = scenario("methods")
      .exec(http("head").head("/items"))
      .exec(http("options").options("/items"))
      .exec(http("put").put("/items/1").headers(JSON).body(StringBody("""
          {
            "name": "tea",
            "note": "a \\"b\\""
          }""")))
      .exec(http("patch").patch("/items/1").headers(JSON).body(RawFileBody("body.json")))
      .exec(http("template").post("/items").body(ElFileBody("template.json")).asJson())
      .exec(http("absolute").get(BASE + "/absolute?a=b%20c&d"))
      .exec(http("query").get("/query?x=1").queryParam("y", 2).queryParam("z", "ä&="))
      .exec(http("basic").get("/basic").basicAuth("ann", "pw"))
      .exec(http("purge").httpRequest("PURGE", "/cache"))
      .exec(remove(1), remove(2));

    setUp(all.injectClosed(constantConcurrentUsers(USERS).during(10)))
      .protocols(http.baseUrl(BASE).headers(HEADERS));
  }
}
