import { z } from 'zod';
import { settingNames, settingsOf } from '#shared/config/setting-table.ts';
import { GENERATED_KEYS } from './keys.ts';
import { nearName } from './near-name.ts';

/** What scripts/env-file.mjs has read, without the values. */
const envLine = z.object({ line: z.number(), name: z.string().nullable(), within: z.number().optional() });
const envFile = z.object({ path: z.string(), lines: z.array(envLine), unlisted: z.number().optional() });
export type EnvFile = z.infer<typeof envFile>;
type EnvLine = z.infer<typeof envLine>;

/** A file that is something else has many lines that set nothing. */
const MAX_NOTES = 10;

/** What `npm start` reads: a name is corrected to one of these. */
const ownSettings = [...Object.keys(settingsOf('standalone')).filter((name) => !name.startsWith('SWITCHYARD_')), ...Object.keys(GENERATED_KEYS)].concat(
  'HOUSE_SECRET',
  'PLATFORM_PUBLIC_KEY',
  'PLATFORM_SECRET_KEY',
);
/** In deploy/.env.example for other programs than ours: a deployment with containers and `npm start` may share the file. */
const ofDeployment = ['SHOP_FRONT_KEY', 'PUBLISH_ADDRESS', 'POSTGRES_PASSWORD', 'REDIS_PASSWORD'];
const known = new Set([...ownSettings, ...settingNames, ...ofDeployment]);
/** Read by Node, npm, libraries and the shell; also the broker's passwords of deploy/.env.example. */
const WELL_KNOWN =
  /^(?:(?:NODE|OTEL|PG|AWS|NATS_PASSWORD|COMPOSE|DOCKER|SSL_CERT|UV|LC)_?[A-Z]\w*|npm_\w+|(?:HTTPS?|NO|ALL)_PROXY|TZ|LANG|PATH|HOME|TERM|DEBUG|NO_COLOR|FORCE_COLOR)$/;

/** The letters of a name that may be printed. One in others may be a line of a key that was pasted without quotes. */
const LETTERS_OF_NAMES = /^[A-Z][A-Z0-9_]{0,63}$/;

/** @param text of SWITCHYARD_ENV_LINES; null: no file was read */
export function envFileOf(text: string | undefined): EnvFile | null {
  return text === undefined ? null : envFile.parse(JSON.parse(text));
}

/** Whether a line of the file is a setting. */
export function hasSettings(file: EnvFile | null): boolean {
  return file?.lines.some(({ name, within }) => within === undefined && name !== null && isKnown(name)) === true;
}

/**
 * A note for each line of the file without effect, with the setting that may have been meant. No value is read.
 * @param texts of the configuration, which name variables as `${NAME}`
 */
export function envFileNotes(file: EnvFile | null, texts: readonly string[]): string[] {
  if (file === null) return [];
  const named = new Set(texts.flatMap((text) => [...text.matchAll(/\$\{([A-Z_][A-Z0-9_]*)\}/g)].map(([, name]) => name)));
  const notes = file.lines.filter((line) => isWithoutEffect(line, named)).map((line) => noteOf(file.path, line));
  const more = notes.length - MAX_NOTES;
  return [
    ...notes.slice(0, MAX_NOTES),
    ...(more > 0 ? [`${file.path}: ${more} more lines without effect`] : []),
    ...(file.unlisted === undefined ? [] : [`${file.path}: ${file.unlisted} more lines were not checked for their effect`]),
  ];
}

/** For a start that has failed, before the configuration is known: the lines that seem to be misspelt settings. */
export function misspeltSettings(file: EnvFile | null): string[] {
  if (file === null) return [];
  return file.lines
    .filter((line) => isWithoutEffect(line) && (line.name === null || line.within !== undefined || meantBy(line.name) !== null))
    .map((line) => noteOf(file.path, line))
    .slice(0, MAX_NOTES);
}

/**
 * In a value of several lines only what would be a setting outside of it counts.
 * @param named variables that the configuration names
 */
function isWithoutEffect({ name, within }: EnvLine, named: ReadonlySet<string | undefined> = new Set()): boolean {
  if (name === null) return true;
  return within === undefined ? !(isKnown(name) || named.has(name)) : known.has(name) || named.has(name);
}

function isKnown(name: string): boolean {
  return known.has(name) || WELL_KNOWN.test(name) || WELL_KNOWN.test(name.toUpperCase());
}

function noteOf(path: string, { line, name, within }: EnvLine): string {
  const place = `${path}, line ${line}`;
  if (name === null) return `${place} has no effect: it is not NAME=value`;
  if (within !== undefined) return `${place} has no effect: ${name} is part of the quoted value that begins in line ${within}; is a quote missing there?`;
  const meant = meantBy(name);
  const subject = isPrintable(name, meant) ? name : 'its name';
  const reason = `${subject} is neither a setting nor named by the agent's configuration or ROUTER_CONFIG`;
  return `${place} has no effect: ${reason}${meant === null ? '' : `; did you mean ${meant}?`}`;
}

/** Base32 has the letters of a name, but no `_`: `JBSWY3DPEHPK3PXP=` may be the last line of a key. */
function isPrintable(name: string, meant: string | null): boolean {
  return LETTERS_OF_NAMES.test(name) && (name.includes('_') || meant !== null);
}

function meantBy(name: string): string | null {
  return nearName(name.toUpperCase(), ownSettings);
}
