import { isatty } from 'node:tty';
import { pino, stdTimeFunctions } from 'pino';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { type LineWriter, lineWriter } from './line-writer.ts';
import { maskUrl, redactSecrets } from './redact.ts';
import { textLine } from './text-line.ts';

const STDERR = 2;

/** The contract's names of levels beside those of the library. */
const LEVELS = {
  TRACE: 'trace',
  DEBUG: 'debug',
  INFO: 'info',
  WARN: 'warn',
  WARNING: 'warn',
  ERROR: 'error',
  CRITICAL: 'fatal',
  FATAL: 'fatal',
  SILENT: 'silent',
} as const satisfies Record<string, string>;

type Write = (fields: Record<string, unknown>, message: string) => void;

/** What code logs to, and nothing more, so that a test can pass a few functions. Ids go into fields; texts of customers go nowhere. */
export interface Log {
  trace: Write;
  debug: Write;
  info: Write;
  warn: Write;
  /** The error itself goes into the field `err`: it is written with its codes and its whole chain of causes. */
  error: Write;
  /** Whether lines of this level are written at all, for those who would gather much for one; absent: they are. */
  writes?: (level: Level) => boolean;
}

type Level = 'trace' | 'debug' | 'info' | 'warn' | 'error';

/** A process's log, whose level may become known only once its configuration is read. */
export interface ProcessLog extends Log {
  /** @param level as in `LogOptions` @throws `config.invalid` when there is no such level */
  setLevel(level: string): void;
}

/** Where neither LOG_LEVEL nor a manifest sets one; the contract's default of `runtime.log_level`. */
const DEFAULT_LEVEL = 'info';

export interface LogOptions {
  /** The least level that is written: `TRACE`, `DEBUG`, `INFO`, `WARNING`, `ERROR`, `CRITICAL`, or the library's spelling, in any case; null: info. */
  level: string | null;
  /** The service's name, in every line. */
  service: string;
  /** `text` for people or `json` for programs, in any case; null or absent: text where stderr is a terminal. */
  format?: string | null;
  /** Where lines go; stderr unless a test wants them. */
  output?: Pick<LineWriter, 'write'>;
  /** Called for each line that stderr did not take in time. */
  onDrop?: () => void;
}

/**
 * A log of lines on stderr: JSON, or text for people. Secrets in fields are masked by their keys, and in all texts the credentials of URLs, before anything
 * is written (redact.ts).
 * @throws `config.invalid` when there is no such level or format
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
      // Errors are plain data by then (redact.ts); the library's own serializer would rename their fields.
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

/** A log whose every line says what it is about, such as the ids of a call. @param about asked for each line: mostly there is none */
export function logAbout(log: Log, about: () => Record<string, unknown>): Log {
  const at =
    (name: Level): Write =>
    (fields, message) =>
      // What happened first, for people who read along; where both have a field it is the line's own.
      log[name](Object.assign({}, fields, about(), fields), message);
  return { trace: at('trace'), debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

const ignore: Write = () => {};

/** For tests and tools that want no log. */
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
      throw new SwitchyardError('config.invalid', `there is no log format '${format}': choose text or json`);
  }
}

function levelOf(level: string): (typeof LEVELS)[keyof typeof LEVELS] {
  const found = Object.entries(LEVELS).find(([name]) => name === level.toUpperCase());
  if (found === undefined)
    throw new SwitchyardError('config.invalid', `there is no log level '${level}': choose TRACE, DEBUG, INFO, WARNING, ERROR or CRITICAL`);
  return found[1];
}
