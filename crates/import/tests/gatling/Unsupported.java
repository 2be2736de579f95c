import static io.gatling.javaapi.core.CoreDsl.*;
import static io.gatling.javaapi.http.HttpDsl.*;

import io.gatling.javaapi.core.*;
import io.gatling.javaapi.http.*;
import java.util.function.Supplier;
import java.util.stream.Stream;
import java.util.*;

public class Unsupported extends Simulation {
  Iterator<Map<String, Object>> made =
    Stream.generate((Supplier<Map<String, Object>>) () -> Collections.singletonMap("id", 1)).iterator();

  HttpProtocolBuilder protocol = http.baseUrl("http://127.0.0.1:8080")
    .proxy(Proxy("proxy.example", 3128))
    .wsBaseUrl("ws://127.0.0.1:8080")
    .connectionHeader("keep-alive");

  ScenarioBuilder scn = scenario("unsupported")
    .exec(http("css").get("/css").check(
      css("a.next", "href").saveAs("href"),
      jsonPath("$..id").findAll().saveAs("ids"),
      jsonPath("$.id").transform(id -> id + "x").saveAs("changed"),
      currentLocation().is("/"),
      jmesPath("items[?id==`1`].name").saveAs("name"),
      xpath("//a").is("b")))
    .exec(session -> {
      System.out.println(session.getString("href"));
      return session;
    })
    .feed(made)
    .exec(http("lambda").get(session -> "/" + session.getString("id")))
    .exec(http("multipart").post("/up").bodyPart(RawFileBodyPart("file", "a.bin")).asMultipartForm())
    .exec(http("list").get("/#{ids(0)}/#{user.name}"))
    .doIf(session -> session.contains("href")).then(exec(http("if").get("/if")))
    .asLongAs(session -> true).on(exec(http("while").get("/while")))
    .during(10).on(exec(http("during").get("/during")))
    .foreach("#{ids}", "id").on(exec(http("each").get("/each")))
    .pace(5)
    .pause("#{time}")
    .rendezVous(10)
    .exec(addCookie(Cookie("a", "b")))
    .exec(ws("open").connect("/ws"))
    .exec(http("silent").get("/silent").silent().transformResponse((response, session) -> response))
    .exitHereIf("#{stop}");

  @Override
  public void before() {
    System.out.println("before");
  }

  {
    setUp(
      scn.injectOpen(constantUsersPerSec(2).during(10)).andThen(scenario("child").exec(http("child").get("/child")).injectOpen(atOnceUsers(1))),
      scenario("closed").exec(http("closed").get("/closed")).injectClosed(constantConcurrentUsers(1).during(5)),
      scenario("empty").pause(1).injectOpen(atOnceUsers(1))
    ).protocols(protocol)
      .throttle(reachRps(100).in(10), holdFor(60))
      .assertions(
        global().responseTime().stdDev().lt(5),
        global().allRequests().count().gt(5L),
        details("nobody").failedRequests().count().is(0L));
  }
}
