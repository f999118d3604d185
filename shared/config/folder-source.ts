import { opendir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { type DocumentKind, documentFolders } from './document-kinds.ts';
import type { DocumentSource, DocumentsRead, RawDocument } from './document-source.ts';
import { readDocumentFile } from './read-document-file.ts';

/** Errors must be reported within 10 s of the start, on a slow machine too: about 2 MiB of YAML are parsed per second. */
const MAX_DOCUMENTS = 2_000;
const MAX_TOTAL_BYTES = 4_194_304;
const MAX_FOLDER_ENTRIES = 10_000;

const DOCUMENT_FILE = /^[^.].*\.(?:yaml|yml|json)$/i;

/** `<folder>/{prompts,routines,policies,glossaries,macros,variable-sets}/*.{yaml,yml,json}`, one document per file. A missing subfolder is empty. */
export function folderSource(folder: string): DocumentSource {
  return { read: () => readFolder(folder) };
}

/** All of them, whatever the manifest names, so that errors in any are reported. */
async function readFolder(folder: string): Promise<DocumentsRead> {
  const top = await entriesOf(folder);
  const problems = top === null ? [`${folder}: the folder does not exist`] : [];
  const listed = await listFiles(folder);
  checkTotals(folder, listed);
  const documents = {
    prompts: await readKind(listed.prompts),
    routines: await readKind(listed.routines),
    policies: await readKind(listed.policies),
    glossaries: await readKind(listed.glossaries),
    macros: await readKind(listed.macros),
    variable_sets: await readKind(listed.variable_sets),
  };
  return { documents, problems, warnings: ignoredFolders(folder, top ?? []) };
}

interface ListedFile {
  path: string;
  sizeBytes: number;
}
type ListedFiles = { [Kind in DocumentKind]: ListedFile[] };

async function listFiles(folder: string): Promise<ListedFiles> {
  const list = (kind: DocumentKind) => filesIn(join(folder, documentFolders[kind]));
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

async function readKind(files: readonly ListedFile[]): Promise<RawDocument[]> {
  const read: RawDocument[] = [];
  for (const { path: file } of files) read.push({ file, ...(await readDocumentFile(file)) });
  return read;
}

/** Warns of unknown subfolders, which are likely misspelt. */
function ignoredFolders(folder: string, entries: readonly Entry[]): string[] {
  const known = new Set<string>(Object.values(documentFolders));
  const unknownFolders = entries.filter(({ name, isFolder }) => isFolder && !known.has(name) && !name.startsWith('.'));
  return unknownFolders.map(({ name }) => `${join(folder, name)} is ignored: the folders of documents are ${[...known].join(', ')}`);
}
