/** Asks again and again with a pause between, and takes the answer to the last request only. */
export class Latest<In, Out> {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private abort: AbortController | null = null;

  constructor(
    private readonly pause_ms: number,
    private readonly ask: (what: In, signal: AbortSignal) => Promise<Out>,
    private readonly answered: (answer: Out, what: In) => void,
    private readonly failed: (error: unknown) => void,
  ) {}

  /** Asks once nothing else was asked for a while. Requests under way are dropped. */
  later(what: In): void {
    this.end();
    this.timer = setTimeout(() => void this.now(what), this.pause_ms);
  }

  async now(what: In): Promise<void> {
    this.end();
    const abort = new AbortController();
    this.abort = abort;
    try {
      const answer = await this.ask(what, abort.signal);
      if (!abort.signal.aborted) this.answered(answer, what);
    } catch (error) {
      if (!abort.signal.aborted) this.failed(error);
    }
  }

  /** Takes no answer any more. */
  end(): void {
    clearTimeout(this.timer);
    this.abort?.abort();
    this.abort = null;
  }
}
