import { isatty } from 'node:tty';
import { pino, stdTimeFunctions } from 'pino';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { type LineWriter, lineWriter } from './line-writer.ts';
import { logLevelOf, type logLevels } from './log-levels.ts';
import { maskUrl, redactSecrets } from './redact.ts';
import { textLine } from './text-line.ts';

const STDERR = 2;

type Write = (fields: Record<string, unknown>, message: string) => void;

/** The logging port. Ids go into fields; customer text is never logged. */
export interface Log {
  trace: Write;
  debug: Write;
  info: Write;
  warn: Write;
  /** The field `err` takes the error; it is written with its codes and causes. */
  error: Write;
  /** To skip costly fields of disabled levels; absent: enabled. */
  writes?: (level: Level) => boolean;
}

type Level = 'trace' | 'debug' | 'info' | 'warn' | 'error';

/** Its level may be set after the configuration is read. */
export interface ProcessLog extends Log {
  /** @param level as in `LogOptions` @throws `config.invalid` for an unknown level */
  setLevel(level: string): void;
}

/** The contract's default of `runtime.log_level`. */
const DEFAULT_LEVEL = 'info';

export interface LogOptions {
  /** `TRACE`, `DEBUG`, `INFO`, `WARNING`, `ERROR`, `CRITICAL`, or pino's spelling, in any case; null: info. */
  level: string | null;
  service: string;
  /** `text` or `json`, in any case; null or absent: text when stderr is a terminal. */
  format?: string | null;
  /** Default: stderr. */
  output?: Pick<LineWriter, 'write'>;
  /** Called for each line that a slow stderr dropped. */
  onDrop?: () => void;
}

/**
 * A log on stderr, as JSON lines or text. Secret fields are masked by key, and credentials of URLs in all texts (redact.ts).
 * @throws `config.invalid` for an unknown level or format
 */
export function createLog({ level, service, format = null, onDrop = () => {}, output }: LogOptions): ProcessLog {
  const shape = isText(format, output === undefined && isatty(STDERR)) ? textLine : asItIs;
  const writer = output === undefined ? lineWriter({ fd: STDERR, service, shape, onDrop }) : { write: (line: string) => output.write(shape(line)) };
  const logger = pino(
    {
      level: levelOf(level ?? DEFAULT_LEVEL),
      base: { service, pid: process.pid },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // pino's serializer would rename the fields of errors, which are plain data already (redact.ts).
      serializers: { err: (error: unknown) => error },
    },
    writer,
  );
  const at =
    (name: Level): Write =>
    (fields, message) => {
      if (logger.isLevelEnabled(name)) logger[name](redactSecrets(fields), maskUrl(message));
    };
  const writes = (level: Level) => logger.isLevelEnabled(level);
  const setLevel = (next: string) => {
    logger.level = levelOf(next);
  };
  return { trace: at('trace'), debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), writes, setLevel };
}

/** Adds fields to every line, such as the ids of a call. @param about called per line */
export function logAbout(log: Log, about: () => Record<string, unknown>): Log {
  return new LogAbout(log, about);
}

/** One is made for each call, most of which log nothing by it: so its methods are the class's, not closures. */
class LogAbout implements Log {
  readonly #log: Log;
  readonly #about: () => Record<string, unknown>;

  constructor(log: Log, about: () => Record<string, unknown>) {
    this.#log = log;
    this.#about = about;
  }

  trace(fields: Record<string, unknown>, message: string): void {
    this.#log.trace(this.#with(fields), message);
  }

  debug(fields: Record<string, unknown>, message: string): void {
    this.#log.debug(this.#with(fields), message);
  }

  info(fields: Record<string, unknown>, message: string): void {
    this.#log.info(this.#with(fields), message);
  }

  warn(fields: Record<string, unknown>, message: string): void {
    this.#log.warn(this.#with(fields), message);
  }

  error(fields: Record<string, unknown>, message: string): void {
    this.#log.error(this.#with(fields), message);
  }

  /** The line's own fields come first and win over those of `about`. */
  #with(fields: Record<string, unknown>): Record<string, unknown> {
    return Object.assign({}, fields, this.#about(), fields);
  }
}

const ignore: Write = () => {};

/** For tests and tools. */
export const silentLog: Log = { trace: ignore, debug: ignore, info: ignore, warn: ignore, error: ignore };

const asItIs = (line: string) => line;

function isText(format: string | null, isTerminal: boolean): boolean {
  switch (format?.toLowerCase()) {
    case undefined:
      return isTerminal;
    case 'text':
      return true;
    case 'json':
      return false;
    default:
      throw new SwitchyardError('config.invalid', `the log format (LOG_FORMAT) '${format}' is unknown: choose text or json`);
  }
}

function levelOf(level: string): (typeof logLevels)[keyof typeof logLevels] {
  const found = logLevelOf(level);
  if (found !== null) return found;
  throw new SwitchyardError(
    'config.invalid',
    `the log level (LOG_LEVEL, or runtime.log_level of the manifest) '${level}' is unknown: choose TRACE, DEBUG, INFO, WARNING, ERROR or CRITICAL`,
  );
}
