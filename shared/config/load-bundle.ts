import { type Manifest, manifest as manifestSchema } from '../contracts/manifest/manifest.ts';
import { quotedName } from '../contracts/printed-name.ts';
import { SwitchyardError } from '../errors/switchyard-error.ts';
import { blocksWithoutEffect } from './blocks-without-effect.ts';
import { type BundleBody, type Documents, hashOf } from './bundle-body.ts';
import { type Credential, checkCredentials, checkRoutineWebhooks } from './check-credentials.ts';
import { checkDocuments } from './check-documents.ts';
import { checkEngineLimits } from './check-engine-limits.ts';
import { checkReferences } from './check-references.ts';
import { checkRelationships } from './check-relationships.ts';
import { checkSchemas } from './check-schemas.ts';
import { checkTextLimits } from './check-text-limits.ts';
import type { DocumentSource } from './document-source.ts';
import { outlineOf } from './manifest-outline.ts';
import { type Named, type NamedDocuments, namedDocuments, type Report } from './named-documents.ts';
import { check, configInvalid, sentenceOf } from './problems.ts';
import { readDocumentFile } from './read-document-file.ts';
import { type Environment, resolveKey, variableOf } from './secret-ref.ts';

/** An agent's resolved configuration; fixed for the whole of a turn or run. */
export interface Bundle {
  hash: string;
  body: BundleBody;
}

export interface LoadedBundle extends Bundle {
  /** What is valid but probably not meant, with its place. */
  warnings: string[];
  withoutEffect: string[];
}

/** Of the manifest's schema. Other versions of 6 have the same fields, or some that are refused by name. */
const SCHEMA_VERSION = '6.1.5';

interface LoadBundleOptions {
  manifestPath: string;
  documents: DocumentSource;
  environment: Environment;
  /** The credentials that this process needs; absent: all. With those of webhooks, the secrets of routines' webhooks are looked for, too. */
  credentials?: readonly Credential[];
  /** Gets a line for each variable that is not set, which is no error then. */
  onUnset?: (line: string) => void;
  /** What to do about variables that are not set, as the last line of the error. */
  unsetAdvice?: string;
}

/**
 * Reads the manifest and its documents, and checks them against each other and the environment.
 * @throws `config.invalid` listing every error, one line each, in the manifest and in every document that the source has read
 */
export async function loadBundle({
  manifestPath,
  documents: source,
  environment,
  credentials: used,
  onUnset,
  unsetAdvice,
}: LoadBundleOptions): Promise<LoadedBundle> {
  const { value, problems: unreadable } = await readDocumentFile(manifestPath);
  const { value: manifest, problems: wrong } = unreadable.length > 0 ? { value: null, problems: [] } : check(manifestSchema, value);
  const credentials = checkCredentials(value, environment, used);
  const inManifest = (line: string) => `${manifestPath}: ${line}`;
  const unset = credentials.unset.map(inManifest);
  if (onUnset !== undefined) for (const line of unset) onUnset(line);
  const ofCredentials = [...(onUnset === undefined ? unset : []), ...credentials.problems.map(inManifest)];
  const ofManifest = [...[...unreadable, ...wrong.map(sentenceOf)].map(inManifest), ...ofCredentials];
  const advice = onUnset === undefined && unset.length > 0 ? unsetAdvice : undefined;
  // Even when the manifest has errors, so that one start reports all mistakes.
  const outline = outlineOf(value);
  const read = await source.read(outline).catch((error: unknown) => {
    throw ofManifest.length === 0 ? error : configInvalid("the agent's configuration", [...ofManifest, messageOf(error)], advice);
  });
  const { found, problems: inDocuments } = checkDocuments(read.documents);
  const problems = [...ofManifest, ...read.problems, ...inDocuments];

  const report: Report = (file, path, message) => problems.push(`${file}: ${sentenceOf({ path, expected: message })}`);
  const named = outline === null ? null : namedDocuments(outline, found, manifestPath, report);
  if (outline !== null && named !== null) {
    checkReferences(outline, named, manifestPath, report);
    checkRelationships(outline, named, manifestPath, report);
    checkEngineLimits(outline, named, manifestPath, report);
    checkTextLimits(outline, named, manifestPath, report);
    checkSchemas(named, report);
  }
  if (manifest === null || named === null || problems.length > 0) throw configInvalid("the agent's configuration", problems, advice);
  const body = { manifest, documents: documentsOf(named) };
  const webhooks = used === undefined || used.includes('webhooks.*.secret_env') ? checkRoutineWebhooks(named, environment) : [];
  const warnings = [
    ...[...otherVersion(manifest.schema_version), ...credentials.warnings].map(inManifest),
    ...read.warnings,
    ...webhooks,
    ...unrestrictedCallbacks(named),
  ];
  return { hash: hashOf(body), body, warnings, withoutEffect: blocksWithoutEffect(value, body.documents) };
}

function otherVersion(version: string | null): string[] {
  return version === null || version === SCHEMA_VERSION ? [] : [`schema_version: ${version} is read as ${SCHEMA_VERSION}, the version of this release`];
}

/** The manifest by itself. @throws `config.invalid` listing its errors */
export async function readManifest(path: string): Promise<Manifest> {
  const { value, problems: unreadable } = await readDocumentFile(path);
  const { value: manifest, problems } = unreadable.length > 0 ? { value: null, problems: [] } : check(manifestSchema, value);
  if (manifest === null) throw configInvalid(path, [...unreadable, ...problems.map(sentenceOf)]);
  return manifest;
}

/** The bearer token of the agent's API. @throws `config.invalid` naming the variable when it is not set */
export function agentApiKey(bundle: Bundle, environment: Environment): string {
  const reference = bundle.body.manifest.agent_config.runtime.api_key;
  const key = resolveKey(reference, environment);
  if (key === null) throw new SwitchyardError('config.invalid', `agent_config.runtime.api_key: the environment variable ${variableOf(reference)} is not set`);
  return key;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function documentsOf(named: NamedDocuments): Documents {
  return {
    prompts: sortedDocuments(named.prompts),
    routines: sortedDocuments(named.routines),
    policies: sortedDocuments(named.policies),
    glossaries: sortedDocuments(named.glossaries),
    macros: sortedDocuments(named.macros),
    variable_sets: sortedDocuments(named.variable_sets),
  };
}

/** Sorted by id and version, so that the order of files and lists does not change the hash. */
function sortedDocuments<Document extends { id: string; version: number }>(named: readonly Named<Document>[]): Document[] {
  const documents = named.map(({ document }) => document);
  return documents.sort((left, right) => (left.id === right.id ? left.version - right.version : left.id < right.id ? -1 : 1));
}

/** Callbacks carry the agent's key: without an allow-list, a caller can have it sent to any host. */
function unrestrictedCallbacks({ routines }: NamedDocuments): string[] {
  return routines.flatMap(({ file, document }) => {
    if (document.kind !== 'autonomous' || (document.callback_url_allowlist?.length ?? 0) > 0) return [];
    return [
      `${file}: callback_url_allowlist is not set: results of the routine ${quotedName(document.id)}, and the agent's key with them, may be sent to any host`,
    ];
  });
}
