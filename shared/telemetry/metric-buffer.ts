type Labels = Readonly<Record<string, string>>;

/** Numbers of one series that are held back; past it they are handed on although nobody has looked. More, and it would take a moment that is felt. */
const MAX_BUFFERED = 512;

interface Series {
  labels: Labels;
  numbers: number[];
}

/** A step on the way to a series: the values of the labels so far. */
interface Level {
  below: Map<string, Level>;
  series: Series | null;
}

/**
 * Holds numbers back until somebody looks. The library finds a series by a text that it makes of all labels, which costs more than the rest
 * of it and stands in the way of answers; here each label is one step in a tree.
 */
export class MetricBuffer {
  readonly #labelNames: readonly string[];
  readonly #flush: (labels: Labels, numbers: readonly number[]) => void;
  readonly #root: Level = { below: new Map(), series: null };
  readonly #all: Series[] = [];

  constructor(labelNames: readonly string[], flush: (labels: Labels, numbers: readonly number[]) => void) {
    this.#labelNames = labelNames;
    this.#flush = flush;
  }

  note(labels: Labels, number: number): void {
    const series = this.#seriesOf(labels);
    series.numbers.push(number);
    if (series.numbers.length >= MAX_BUFFERED) this.#empty(series);
  }

  flushAll(): void {
    for (const series of this.#all) this.#empty(series);
  }

  #empty(series: Series): void {
    const { labels, numbers } = series;
    if (numbers.length === 0) return;
    series.numbers = [];
    this.#flush(labels, numbers);
  }

  #seriesOf(labels: Labels): Series {
    let level = this.#root;
    for (const name of this.#labelNames) {
      const value = labels[name] ?? '';
      let next = level.below.get(value);
      if (next === undefined) {
        next = { below: new Map(), series: null };
        level.below.set(value, next);
      }
      level = next;
    }
    if (level.series === null) {
      level.series = { labels, numbers: [] };
      this.#all.push(level.series);
    }
    return level.series;
  }
}
