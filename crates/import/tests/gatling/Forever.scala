package legacy

import io.gatling.core.Predef._
import io.gatling.http.Predef._
import scala.concurrent.duration._
import scala.language.postfixOps

// Of a time when slots were written with a dollar.
class Forever extends Simulation {

  val baseUrl = Option(System.getProperty("baseUrl")).getOrElse("http://127.0.0.1:8080")
  val users   = Integer.getInteger("users", 4).toInt

  val headers_0 = Map("X-Requested-With" -> "XMLHttpRequest", "Pragma" -> "no-cache")
  val feeder    = Array(Map("id" -> "7", "lang" -> "en")).circular

  val httpProtocol = http
    .baseUrl(baseUrl)
    .acceptHeader("application/json")

  val scn = scenario("Forever")
    .feed(feeder)
    .forever {
      exec(
        http("item")
          .get("/items/${id}")
          .headers(headers_0)
          .check(status.is(200), jsonPath("$.next").find.saveAs("next"))
      )
        .pause(500 milliseconds)
        .exec(http("next").get("${next}").queryParam("lang", "${lang}"))
    }

  setUp(
    scn.inject(rampUsers(users) during (20 seconds)).protocols(httpProtocol)
  ).maxDuration(1 minute)
    .assertions(forAll.failedRequests.percent.lte(5), global.responseTime.percentile(99.9).lt(1500))
}
