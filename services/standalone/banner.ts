import { join, resolve, sep } from 'node:path';
import type { RouterConfig } from '#shared/config/router-config.ts';
import type { KeyLocation } from './callers-keys.ts';
import { KEYS_FILE } from './keys.ts';
import { wrapWords } from './wrap-words.ts';

/** Enough to choose one from; `GET /api/v1/models` has all. */
const MAX_MODELS_NAMED = 8;
const LABEL_COLUMNS = 17;
const NEW_FOLDER = ' (new: sessions and callbacks of another folder are not in it)';
/** A word that means itself in every shell. */
const PLAIN_WORD = /^[\w./@:+-]+$/;

export interface BannerFacts {
  /** The first words: what is running. */
  what: string;
  routerUrls: readonly string[];
  agentUrls: readonly string[];
  agentName: string;
  manifestPath: string;
  /** Holds the key file, and what `npm run ask` reads. */
  dataFolder: string;
  /** Whether the folder goes when this program ends. */
  isTemporary: boolean;
  /** Whether this start has made the folder. */
  isNewFolder: boolean;
  /** Of the keys that the router accepts. Empty: it accepts none. */
  routerKeys: readonly KeyLocation[];
  agentKey: KeyLocation;
  /** Generated keys that may be shown: made by this start, and read by a person at a terminal. By their field of the key file. */
  shownKeys: ReadonlyMap<string, string>;
  routerConfig: Pick<RouterConfig, 'models' | 'providers'>;
  /** Null: the configuration is the built-in one. */
  routerConfigPath: string | null;
  /** A question for the sample agent, or for any. */
  question: string;
  /** The file of settings that was read; null: none. */
  envFile: string | null;
  /** What works but is probably not meant, one sentence each. */
  warnings: readonly string[];
  /** What the agent's configuration gives and nothing carries out yet, one line each. */
  withoutEffect: readonly string[];
}

/** What `npm start` and `npm run cluster` print: what runs where, where its keys are, and one line each to try it. No line is wider than a terminal, long names aside. */
export function banner(facts: BannerFacts): string {
  const ask = `  ${settingOfFolder(facts.dataFolder)}npm run -s ask --`;
  const rows = [
    row('Model router', facts.routerUrls.map((url) => `${url}/api/v1`).join(' ') || 'none'),
    ...keyRows(facts.routerKeys, facts),
    row('Agent server', facts.agentUrls.join(' ') || 'none'),
    ...keyRows([facts.agentKey], facts),
    row('Agent', `${facts.agentName} (${nearby(facts.manifestPath)})`),
    row('Models', modelsText(facts)),
    ...(facts.isTemporary ? [] : [row('Data', `${nearby(facts.dataFolder)}${facts.isNewFolder ? NEW_FOLDER : ''}`)]),
    ...(facts.envFile === null ? [] : [row('Settings', `${nearby(facts.envFile)}, and the environment, which wins`)]),
  ];
  return `
${facts.what} is running. Ctrl-C stops it.

${rows.join('\n')}
${facts.warnings.map((warning) => `\n  Note: ${wrapWords(nearby(warning), { indent: 8 })}\n`).join('')}${withoutEffectLines(facts.withoutEffect)}
To try them, in another terminal and in this folder:

${ask} "Hello"
${ask} --agent "${facts.question}"

README.md, "First requests", has the same with curl and with an SDK.
`;
}

/** One line each, which a terminal of 80 columns does not wrap. */
function withoutEffectLines(blocks: readonly string[]): string {
  return blocks.length === 0 ? '' : `\n${blocks.map((block) => `  No effect yet: ${block}\n`).join('')}`;
}

function row(label: string, text: string): string {
  return `  ${label.padEnd(LABEL_COLUMNS - 2)}${wrapWords(text, { indent: LABEL_COLUMNS })}`;
}

/** A key that is shown has a line of its own, from the first column on: it is as wide as a terminal. */
function keyRows(locations: readonly KeyLocation[], { dataFolder, shownKeys, routerConfigPath }: BannerFacts): string[] {
  if (locations.length === 0) return [row('  key', `none: every key in ${nearby(routerConfigPath ?? '')} is disabled`)];
  return locations.flatMap((location) => {
    if ('variable' in location) return [row('  key', `$${location.variable}`)];
    const shown = shownKeys.get(location.field);
    const text = `${location.field} in ${nearby(join(dataFolder, KEYS_FILE))}`;
    return shown === undefined ? [row('  key', text)] : [row('  key', `${text}, shown only now:`), shown];
  });
}

function modelsText({ routerConfig: { models, providers }, routerConfigPath }: BannerFacts): string {
  const named = models.slice(0, MAX_MODELS_NAMED).map(({ id }) => id);
  const more = models.length - named.length;
  const names = `${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  if (routerConfigPath !== null) return `${names} (${nearby(routerConfigPath)})`;
  const [provider] = providers;
  if (provider?.kind === 'openai-compatible') return `${names} (${addressOf(provider.base_url)}${provider.api_key === undefined ? ', without a key' : ''})`;
  return `${names}: a built-in script, not a model. Set OPENAI_API_KEY or OPENAI_BASE_URL to use one.`;
}

/** Without what may be a credential in it. */
function addressOf(url: string): string {
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname}`;
}

/** Before the command, where that would look into another folder. */
function settingOfFolder(dataFolder: string): string {
  if (dataFolder === resolve('data')) return '';
  const folder = nearby(dataFolder);
  return `DATA_DIR=${PLAIN_WORD.test(folder) ? folder : `'${folder.replaceAll("'", `'\\''`)}'`} `;
}

/** Paths below the folder that the person is in are told from there. */
function nearby(text: string): string {
  const folder = `${process.cwd()}${sep}`;
  return text.replaceAll(folder, '');
}
