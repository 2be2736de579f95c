import io.gatling.core.Predef._
import io.gatling.http.Predef._
import scala.concurrent.duration._

class During extends Simulation {
  val scn = scenario("during").during(30.seconds) {
    exec(http("tick").get("/tick")).pause(100.milliseconds)
  }

  setUp(scn.inject(atOnceUsers(5))).protocols(http.baseUrl("http://127.0.0.1:8080"))
    .assertions(global.requestsPerSec.gt(10), global.failedRequests.count.is(0))
}
