interface PrintedLine {
  atMs: number;
  by: string;
  line: string;
}

/** Of a pass of some minutes under load. */
const MOST_LINES = 100_000;
/** Around a refusal: longer than a worker may be silent before it is taken for dead. */
const AROUND_MS = 10_000;

/** Of a worker's line about a work item whose lease was lost, which names its call. */
const LOST_LEASE = /"time":"([^"]+)".*"lease":"lost"/;

/** What the processes of a cluster have printed; the oldest lines are dropped. */
export class PrintedLines {
  #lines: PrintedLine[] = [];

  add(by: string, line: string): void {
    this.#lines.push({ atMs: Date.now(), by, line });
    if (this.#lines.length > MOST_LINES) this.#lines = this.#lines.slice(MOST_LINES / 2);
  }

  /** Lines that name it, and what any process warned of around that time. */
  about(name: string, at: Date): string[] {
    const isNear = ({ atMs }: PrintedLine) => Math.abs(atMs - at.getTime()) < AROUND_MS;
    return this.#lines.filter((one) => one.line.includes(name) || (isNear(one) && !one.line.includes('"level":"info"'))).map(({ by, line }) => `${by} ${line}`);
  }

  /** When workers lost the lease of a call, by their clocks. */
  lostLeases(callId: string): { by: string; atMs: number }[] {
    return this.#lines.flatMap(({ by, line }) => {
      const [, time] = line.includes(callId) ? (LOST_LEASE.exec(line) ?? []) : [];
      return time === undefined ? [] : [{ by, atMs: Date.parse(time) }];
    });
  }
}
