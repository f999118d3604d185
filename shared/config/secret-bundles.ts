import { opendir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { z } from 'zod';
import { quotedName } from '../contracts/printed-name.ts';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { configInvalid } from './problems.ts';
import { readDocumentFile } from './read-document-file.ts';
import { type Environment, resolveSecret } from './secret-ref.ts';
import { tolerantList, tolerantObject, tolerantText } from './tolerant.ts';

/** A key or a certificate has a few KiB; a bundle as large as this is another file. */
const MAX_BUNDLE_BYTES = 1_048_576;
const MAX_FOLDER_ENTRIES = 1_000;
/** No path: a bundle is an entry of the folder itself. */
const BUNDLE_NAME = /^(?!\.)[^/\\\0]{1,200}$/;
/** As in a reference. */
const VARIABLE = /^[A-Z_][A-Z0-9_]*$/;

const outline = z.object({ secrets: tolerantList(tolerantObject({ secret_name: tolerantText })) });

interface SecretBundlesOptions {
  manifestPath: string;
  /** `SECRETS_DIR`; null: the variables of all bundles are in the environment already. */
  secretsPath: string | null;
  environment: Environment;
}

export interface Secrets {
  /** As they were at the start: later changes of the environment or of a bundle have no effect on it. Never stored or logged. */
  atStart: Environment;
  /** Reads a `${VARIABLE}` anew, for the secrets of webhooks; null: it is not set, or its bundle can't be read. */
  now(reference: string): Promise<string | null>;
}

/**
 * The environment with the variables of the manifest's `secrets`, each a file `<secret_name>.env` or a folder `<secret_name>/` with a file per variable.
 * Variables of the environment win, and of bundles those of the later one.
 * @throws `config.invalid` naming each bundle that is missing or can't be read. Other errors of the manifest are left to `loadBundle`
 */
export async function readSecrets({ manifestPath, secretsPath, environment }: SecretBundlesOptions): Promise<Secrets> {
  const names = secretsPath === null ? [] : await bundleNames(manifestPath);
  const read = () => readBundles(secretsPath ?? '', names);
  const { variables, problems } = await read();
  if (problems.length > 0)
    throw configInvalid(
      'the secret bundles of the agent',
      problems.map((line) => `${manifestPath}: ${line}`),
    );
  const given = Object.entries(environment).filter(([name, value]) => value !== undefined && (value !== '' || !(name in variables)));
  // Requests at the same time share one reading.
  let reading: Promise<Variables> | null = null;
  return {
    atStart: Object.freeze({ ...variables, ...Object.fromEntries(given) }),
    async now(reference) {
      const value = resolveSecret(reference, environment);
      if (value !== null || names.length === 0) return value;
      reading ??= read().then((found) => {
        reading = null;
        return found.variables;
      });
      return resolveSecret(reference, await reading);
    },
  };
}

async function bundleNames(manifestPath: string): Promise<(string | null)[]> {
  const { value } = await readDocumentFile(manifestPath);
  return outline.safeParse(value).data?.secrets?.map((entry) => entry?.secret_name ?? null) ?? [];
}

type Variables = Record<string, string>;

async function readBundles(folder: string, names: readonly (string | null)[]): Promise<{ variables: Variables; problems: string[] }> {
  const variables: Variables = {};
  const problems: string[] = [];
  for (const [index, name] of names.entries()) {
    const bundle = name === null ? {} : await readBundle(folder, name);
    if (typeof bundle === 'string') problems.push(`secrets[${index}].secret_name: ${bundle}`);
    else Object.assign(variables, bundle);
  }
  return { variables, problems };
}

/** @returns the variables, or what is wrong */
async function readBundle(folder: string, name: string): Promise<Variables | string> {
  const quoted = quotedName(name);
  if (!BUNDLE_NAME.test(name)) return `${quoted} can't be the name of a secret bundle: it is that of a file or folder in SECRETS_DIR`;
  const [file, perVariable] = [join(folder, `${name}.env`), join(folder, name)];
  try {
    const [isFile, isFolder] = [await isThere(file, 'file'), await isThere(perVariable, 'folder')];
    if (isFile && isFolder) return `the secret bundle ${quoted} is both a file and a folder in SECRETS_DIR: remove one of them`;
    if (isFile) return variablesIn(await textOf(file));
    if (isFolder) return await readFolder(perVariable);
    return `there is no secret bundle ${quoted}: SECRETS_DIR (${folder}) has neither a file ${quotedName(`${name}.env`)} nor a folder ${quoted}`;
  } catch (error) {
    // No `cause`, and no text of the file.
    const why = error instanceof SwitchyardError ? error.message : error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
    return `the secret bundle ${quoted} can't be read (${why})`;
  }
}

/** Follows links: mounted volumes have their files behind them. */
async function isThere(path: string, as: 'file' | 'folder'): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory() === (as === 'folder');
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return false;
    throw error;
  }
}

function variablesIn(text: string): Variables {
  return Object.fromEntries(Object.entries(parseEnv(text)).flatMap(([name, value]) => (VARIABLE.test(name) && value !== undefined ? [[name, value]] : [])));
}

/** Names that no reference can have are passed over, such as the `..data` of mounted volumes. */
async function readFolder(folder: string): Promise<Variables> {
  const variables: Variables = {};
  let entries = 0;
  for await (const { name } of await opendir(folder)) {
    entries += 1;
    if (entries > MAX_FOLDER_ENTRIES) throw new SwitchyardError('config.invalid', `more than ${MAX_FOLDER_ENTRIES} entries`);
    if (VARIABLE.test(name)) variables[name] = (await textOf(join(folder, name))).replace(/\r?\n$/, '');
  }
  return variables;
}

/** A pipe would be read for ever. */
async function textOf(path: string): Promise<string> {
  const found = await stat(path);
  if (!found.isFile()) throw new SwitchyardError('config.invalid', 'not a plain file');
  if (found.size > MAX_BUNDLE_BYTES) throw new SwitchyardError('config.invalid', `larger than ${MAX_BUNDLE_BYTES / 1_048_576} MiB`);
  return readFile(path, 'utf8');
}
