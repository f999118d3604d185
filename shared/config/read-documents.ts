import { opendir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { z } from 'zod';
import { glossary } from '../contracts/documents/glossary.ts';
import { macro } from '../contracts/documents/macro.ts';
import { policy } from '../contracts/documents/policy.ts';
import { prompt } from '../contracts/documents/prompt.ts';
import { variableSet } from '../contracts/documents/variable-set.ts';
import { quotedName } from '../contracts/printed-name.ts';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import type { Documents } from './bundle-body.ts';
import { checkRoutine } from './check-routine.ts';
import { type Checked, check, sentenceOf } from './problems.ts';
import { readDocumentFile } from './read-document-file.ts';
import { tolerantNumber, tolerantObject, tolerantText } from './tolerant.ts';

/** Errors must be reported within 10 s of the start, on a slow machine too: about 2 MiB of YAML are parsed per second. */
const MAX_DOCUMENTS = 2_000;
const MAX_TOTAL_BYTES = 4_194_304;
const MAX_FOLDER_ENTRIES = 10_000;

const DOCUMENT_FILE = /^[^.].*\.(?:yaml|yml|json)$/i;

/** A document's file; null for each part that could not be read. */
export interface Found<Document> {
  file: string;
  id: string | null;
  version: number | null;
  document: Document | null;
}

export type FoundDocuments = { [Kind in keyof Documents]: Found<Documents[Kind][number]>[] };

export const documentFolders = {
  prompts: 'prompts',
  routines: 'routines',
  policies: 'policies',
  glossaries: 'glossaries',
  macros: 'macros',
  variable_sets: 'variable-sets',
} as const satisfies Record<keyof Documents, string>;

export interface DocumentsRead {
  found: FoundDocuments;
  problems: string[];
  warnings: string[];
}

/**
 * Reads `<folder>/{prompts,routines,policies,glossaries,macros,variable-sets}/*.{yaml,yml,json}`, one document per file. A missing
 * subfolder is empty.
 * @throws `config.invalid` when a limit is exceeded; nothing is read then
 */
export async function readDocuments(folder: string): Promise<DocumentsRead> {
  const top = await entriesOf(folder);
  const problems = top === null ? [`${folder}: the folder does not exist`] : [];
  const listed = await listFiles(folder);
  checkTotals(folder, listed);
  const read = <Document>(kind: keyof Documents, schema: z.ZodType<Document>) => readKind(listed[kind], (value) => check(schema, value), problems);
  const found: FoundDocuments = {
    prompts: await read('prompts', prompt),
    routines: await readKind(listed.routines, checkRoutine, problems),
    policies: await read('policies', policy),
    glossaries: await read('glossaries', glossary),
    macros: await read('macros', macro),
    variable_sets: await read('variable_sets', variableSet),
  };
  return { found, problems, warnings: ignoredFolders(folder, top ?? []) };
}

interface ListedFile {
  path: string;
  sizeBytes: number;
}
type ListedFiles = { [Kind in keyof Documents]: ListedFile[] };

async function listFiles(folder: string): Promise<ListedFiles> {
  const list = (kind: keyof Documents) => filesIn(join(folder, documentFolders[kind]));
  return {
    prompts: await list('prompts'),
    routines: await list('routines'),
    policies: await list('policies'),
    glossaries: await list('glossaries'),
    macros: await list('macros'),
    variable_sets: await list('variable_sets'),
  };
}

/** Sorted by name, so that messages have the same order everywhere. */
async function filesIn(folder: string): Promise<ListedFile[]> {
  const entries = (await entriesOf(folder)) ?? [];
  const names = entries.filter(({ name, isFolder }) => !isFolder && DOCUMENT_FILE.test(name)).map(({ name }) => name);
  if (names.length > MAX_DOCUMENTS) throw tooMany(folder);
  const files: ListedFile[] = [];
  for (const name of names.sort()) {
    const path = join(folder, name);
    files.push({ path, sizeBytes: await sizeOf(path) });
  }
  return files;
}

interface Entry {
  name: string;
  isFolder: boolean;
}

/** @returns null when the folder does not exist */
async function entriesOf(folder: string): Promise<Entry[] | null> {
  const entries: Entry[] = [];
  try {
    for await (const entry of await opendir(folder)) {
      if (entries.length === MAX_FOLDER_ENTRIES) throw new SwitchyardError('config.invalid', `${folder} has more than ${MAX_FOLDER_ENTRIES} entries`);
      entries.push({ name: entry.name, isFolder: entry.isDirectory() });
    }
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return null;
    if (cause instanceof SwitchyardError) throw cause;
    throw new SwitchyardError('config.invalid', `${folder} can't be read as a folder`, { cause });
  }
  return entries;
}

/** 0 on an error, which reading the file reports. */
async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch {
    return 0;
  }
}

function checkTotals(folder: string, listed: ListedFiles): void {
  const files = Object.values(listed).flat();
  if (files.length > MAX_DOCUMENTS) throw tooMany(folder);
  const totalBytes = files.reduce((total, { sizeBytes }) => total + sizeBytes, 0);
  if (totalBytes > MAX_TOTAL_BYTES) throw new SwitchyardError('config.invalid', `${folder} contains more than ${MAX_TOTAL_BYTES / 1_048_576} MiB of documents`);
}

function tooMany(folder: string): SwitchyardError {
  return new SwitchyardError('config.invalid', `${folder} contains more than ${MAX_DOCUMENTS} documents`);
}

const identity = tolerantObject({ id: tolerantText, version: tolerantNumber });

async function readKind<Document>(
  files: readonly ListedFile[],
  checked: (value: unknown) => Checked<Document>,
  problems: string[],
): Promise<Found<Document>[]> {
  const found: Found<Document>[] = [];
  const fileOf = new Map<string, string>();
  for (const { path: file } of files) {
    const { value, problems: unreadable } = await readDocumentFile(file);
    const { value: document, problems: wrong } = unreadable.length > 0 ? { value: null, problems: [] } : checked(value);
    problems.push(...[...unreadable, ...wrong.map(sentenceOf)].map((line) => `${file}: ${line}`));
    const { id, version } = identity.parse(value) ?? { id: null, version: null };
    if (id !== null && version !== null) {
      const other = fileOf.get(`${id} ${version}`);
      if (other === undefined) fileOf.set(`${id} ${version}`, file);
      else problems.push(`${file}: has the same id and version as ${other}: ${quotedName(id)}, version ${version}`);
    }
    found.push({ file, id, version, document });
  }
  return found;
}

/** Warns of unknown subfolders, which are likely misspelt. */
function ignoredFolders(folder: string, entries: readonly Entry[]): string[] {
  const known = new Set<string>(Object.values(documentFolders));
  const unknownFolders = entries.filter(({ name, isFolder }) => isFolder && !known.has(name) && !name.startsWith('.'));
  return unknownFolders.map(({ name }) => `${join(folder, name)} is ignored: the folders of documents are ${[...known].join(', ')}`);
}
