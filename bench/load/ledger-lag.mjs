/** How often the workers' metrics are read: a lag of seconds is seen. */
const EVERY_MS = 500;
const READ_LIMIT_MS = 2_000;
const LAG = /^switchyard_usage_backlog_age_seconds (\S+)$/m;

/** The age of the oldest usage record that is not in the ledger yet, over a window, from the metrics of the router workers. */
export class LedgerLag {
  /** @type {readonly string[]} */
  #urls;
  /** @type {number[]} */
  #seconds = [];
  #unread = 0;
  /** @type {NodeJS.Timeout | undefined} */
  #timer;

  /** @param {readonly { role: string, managementUrl: string }[]} management */
  constructor(management) {
    this.#urls = management.filter(({ role }) => role === 'router-worker').map(({ managementUrl }) => managementUrl);
  }

  begin() {
    this.#timer = setInterval(() => void this.#read(), EVERY_MS);
  }

  async end() {
    clearInterval(this.#timer);
    await this.#read();
  }

  /** @returns {{ mostSeconds: number | null, unread: number }} `mostSeconds` null: it was never read; `unread`: reads without a value */
  figures() {
    return { mostSeconds: this.#seconds.length === 0 ? null : Math.max(...this.#seconds), unread: this.#unread };
  }

  async #read() {
    for (const url of this.#urls) {
      const seconds = await readLag(url);
      if (seconds === null) this.#unread += 1;
      else this.#seconds.push(seconds);
    }
  }
}

/** @param {string} url @returns {Promise<number | null>} null: it is missing from the metrics, or these can't be read */
async function readLag(url) {
  try {
    const response = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(READ_LIMIT_MS) });
    const [, seconds] = LAG.exec(await response.text()) ?? [];
    return seconds === undefined ? null : Number(seconds);
  } catch {
    return null;
  }
}
