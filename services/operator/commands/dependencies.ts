import { InvalidArgumentError } from 'commander';
import type { Bus } from '#bus/bus.ts';
import type { CommandTags } from '#bus/command-tags.ts';
import type { StreamState, StreamUpgrade } from '#bus/stream-upgrade.ts';
import type { Clock } from '#shared/clock.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import type { Database } from '#shared/storage/database.ts';
import type { Log } from '#shared/telemetry/log.ts';

/** What commands need. Opened, and loaded, only by those that need it: `--help` takes a tenth of a second. */
export interface CommandDeps {
  openDatabase(): Promise<Database>;
  openBus(): Promise<Pick<Bus, 'work' | 'commands' | 'usage'>>;
  /** @throws `config.invalid` without HOUSE_SECRET */
  openTags(): Promise<Pick<CommandTags, 'tagged'>>;
  /** As the broker's user `operator`. */
  upgradeStreams(): Promise<StreamUpgrade[]>;
  /** Changes nothing. */
  inspectStreams(): Promise<StreamState[]>;
  /** One request to the cache of REDIS_URL, if it is set, and its answer. */
  pingCache(): Promise<void>;
  openLog(): Promise<Log>;
  environment: Environment;
  /** A line of the result. */
  print(line: string): void;
  /** A piece of a text that is not complete yet. */
  write(text: string): void;
  /** What commander says of a wrong command line, and what happens to a connection. Nothing with `--json`. */
  writeError(text: string): void;
  /** What a slow command is about: on a terminal, until something is printed. */
  progress(text: string): void;
  /** Lines that are typed or piped in. `prompt` is shown on a terminal before each. */
  readLines(prompt: string): AsyncIterable<string>;
  /** Of the terminal that gets the result; null: it is none. */
  columns: number | null;
  clock: Clock;
}

/** A parser of options that are whole numbers. */
export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== '' && Number.isSafeInteger(value) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${least}${most === Number.MAX_SAFE_INTEGER ? '' : ` to ${most}`}.`);
  };
}

/** Texts of a server or a store may hold control characters, which a terminal must not get. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ');
}
