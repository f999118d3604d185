import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { z } from 'zod';

const strings = z.array(z.string()).default([]);

/** The parts that tests read. Numbers and booleans of an environment are quoted in the file, since programs read text. */
const composeService = z.looseObject({
  image: z.string(),
  build: z.strictObject({ context: z.string(), dockerfile: z.string() }).optional(),
  entrypoint: strings,
  command: strings,
  environment: z.record(z.string(), z.string()).default({}),
  ports: strings,
  volumes: strings,
  /** With aliases it is an object. */
  networks: z.union([z.array(z.string()), z.record(z.string(), z.looseObject({})).transform((map) => Object.keys(map))]).pipe(z.array(z.string()).min(1)),
  depends_on: z.record(z.string(), z.strictObject({ condition: z.enum(['service_started', 'service_healthy', 'service_completed_successfully']) })).default({}),
  healthcheck: z.looseObject({ test: z.array(z.string()).min(2) }).optional(),
  profiles: strings,
  init: z.boolean().default(false),
  user: z.string().optional(),
  restart: z.string(),
  stop_signal: z.string().optional(),
  stop_grace_period: z.string().optional(),
  container_name: z.never().optional(), // two replicas can't have one name
  ulimits: z.strictObject({ nofile: z.strictObject({ soft: z.number(), hard: z.number() }) }).optional(),
  deploy: z.strictObject({ resources: z.looseObject({ limits: z.strictObject({ memory: z.string() }) }) }),
});

const composeFile = z.looseObject({
  services: z.record(z.string(), composeService),
  networks: z.record(z.string(), z.strictObject({ internal: z.boolean().default(false) })),
  volumes: z.record(z.string(), z.strictObject({})),
});

export type ComposeService = z.infer<typeof composeService>;

/** @throws when the file is not YAML, or a part that tests read has another form */
export function readCompose(path: string): z.infer<typeof composeFile> {
  // Compose resolves `<<` as YAML 1.1 did.
  return composeFile.parse(parse(readFileSync(path, 'utf8'), { merge: true }));
}

/** `${NAME}`, `${NAME:-default}` or `${NAME:?message}`. */
const VARIABLE = /(?<!\$)\$\{(\w+)(?:(:[-?])([^}]*))?\}/g;

interface Variable {
  name: string;
  /** Null when the file requires a value. */
  fallback: string | null;
}

/** Every variable of a text, with repeats. @throws for one that has no default and is not required either */
export function variablesIn(text: string): Variable[] {
  return [...text.matchAll(VARIABLE)].map(([whole, name = '', operator, rest = '']) => {
    if (operator === undefined) throw new Error(`${whole} would be empty without a word: give it a default, or insist on it with :?`);
    return { name, fallback: operator === ':-' ? rest : null };
  });
}

/** The text as compose passes it to a container. @throws for a required variable that is empty */
export function interpolate(text: string, values: Readonly<Record<string, string>>): string {
  const filled = text.replace(VARIABLE, (whole, name: string, operator: string, rest: string) => {
    const value = values[name] || (operator === ':-' ? rest : null);
    if (value === null) throw new Error(`nothing is given for ${whole}`);
    return value;
  });
  return filled.replaceAll('$$', '$');
}

interface ExampleVariable {
  name: string;
  /** As in the file: empty for a required variable. */
  value: string;
  /** Whether it is commented out, since it has a default. */
  isOptional: boolean;
  /** Whether a comment stands above it, or above its group. */
  isExplained: boolean;
}

/** The variables of a file like `.env`, those commented out as `# NAME=default` included. */
export function readEnvExample(path: string): ExampleVariable[] {
  const variables: ExampleVariable[] = [];
  let isExplained = false;
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    const [, comment, name, value = ''] = /^(# )?([A-Z][A-Z0-9_]*)=(\S*)$/.exec(line) ?? [];
    if (name !== undefined) variables.push({ name, value, isOptional: comment !== undefined, isExplained });
    else isExplained = line.startsWith('#');
  }
  return variables;
}

/** A `.env` after the instructions were followed: a secret for each empty variable. */
export function filledEnv(example: readonly ExampleVariable[]): Record<string, string> {
  const secretOf = (name: string) => `s${createHash('sha256').update(name).digest('hex')}`;
  return Object.fromEntries(example.filter(({ isOptional }) => !isOptional).map(({ name, value }) => [name, value || secretOf(name)]));
}

/** @param text such as `140s` */
export function secondsOf(text: string | undefined): number {
  const seconds = Number(/^(\d+)s$/.exec(text ?? '')?.[1]);
  if (Number.isNaN(seconds)) throw new Error(`'${text}' is not a time in seconds, such as 140s`);
  return seconds;
}

/** @param text such as `512M` */
export function bytesOf(text: string): number {
  const [, number, unit] = /^(\d+)([MG])$/.exec(text) ?? [];
  if (number === undefined) throw new Error(`'${text}' is not a size such as 512M`);
  return Number(number) * 1024 ** (unit === 'M' ? 2 : 3);
}
