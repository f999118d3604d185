import { agentConfigOf } from '#shared/config/agent-config.ts';
import { agentDocuments } from '#shared/config/agent-documents.ts';
import { loadBundle } from '#shared/config/load-bundle.ts';
import { problemLines } from '#shared/config/problems.ts';
import { readSecrets } from '#shared/config/secret-bundles.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { settingsOf } from '#shared/config/setting-table.ts';
import { readSettings } from '#shared/config/settings.ts';
import { quotedName } from '#shared/contracts/printed-name.ts';
import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import { redactSecrets } from '#shared/telemetry/redact.ts';

/** More than a configuration may have (`read-document-file.ts`, `folder-source.ts`): nothing of it is cut off. */
const DUMP_LIMITS = { depth: 100, nodes: 10_000_000, characters: Number.POSITIVE_INFINITY };

const { SECRETS_DIR, PUBLIC_BASE_URL } = settingsOf('operator');

interface ValidateOptions {
  manifest: string;
  /** Null: `documents` beside the manifest. */
  documents: string | null;
  dump: boolean;
  json: boolean;
  /** Whether a variable that is not set is a problem, as at a start. */
  strict: boolean;
}

interface ValidateDeps {
  environment: Environment;
  print(line: string): void;
}

/**
 * Checks an agent's configuration as the agent gateway's start does, and prints every problem, or the start's warnings, or the dump. Variables that are
 * not set here are listed apart: they are those of the machine that starts the agent.
 * @throws `config.invalid` with the number of problems
 */
export async function validateManifest({ manifest, documents, dump, json, strict }: ValidateOptions, { environment, print }: ValidateDeps): Promise<void> {
  const settings = readSettings({ SECRETS_DIR, PUBLIC_BASE_URL }, environment);
  const config = agentConfigOf({
    ...settings,
    MANIFEST: manifest,
    ...(documents !== null && { DOCUMENTS: documents }),
  });
  const { manifestPath, secretsPath } = config;
  const problems: string[] = [];
  const collect = (error: unknown): null => {
    if (!(error instanceof SwitchyardError)) throw error;
    problems.push(...problemLines(error));
    return null;
  };
  const secrets = await readSecrets({ manifestPath, secretsPath, environment }).catch(collect);
  const ofAgent = secrets?.atStart ?? environment;
  const source = agentDocuments({ ...config, environment: ofAgent, database: null });
  const unset: string[] = [];
  const onUnset = (line: string) => void (strict ? problems : unset).push(line);
  const bundle = await loadBundle({ manifestPath, documents: source, environment: ofAgent, onUnset }).catch(collect);
  if (bundle === null || problems.length > 0) {
    if (json) print(JSON.stringify({ manifest: manifestPath, problems, unset }, null, 2));
    else for (const line of [...problems, ...unsetLines(unset)]) print(line);
    throw new SwitchyardError(
      'config.invalid',
      `${manifestPath}: ${problems.length === 1 ? '1 problem' : `${problems.length} problems`}; no agent starts with it`,
    );
  }
  const { hash, body, warnings, withoutEffect } = bundle;
  if (dump) return print(JSON.stringify({ hash, ...Object(redactSecrets(body, DUMP_LIMITS)), unset, warnings, without_effect: withoutEffect }, null, 2));
  if (json) {
    const agent = { manifest: manifestPath, agent: body.manifest.name, hash };
    return print(JSON.stringify({ ...agent, problems: [], unset, warnings, without_effect: withoutEffect }, null, 2));
  }
  for (const line of warnings) print(`warning: ${line}`);
  for (const line of withoutEffect) print(`no effect yet: ${line}`);
  for (const line of unsetLines(unset)) print(line);
  print(`${manifestPath} is valid: the agent ${quotedName(body.manifest.name)}, configuration ${hash.slice(0, 12)}`);
}

function unsetLines(unset: readonly string[]): string[] {
  if (unset.length === 0) return [];
  return [
    ...unset.map((line) => `not set: ${line}`),
    'set these variables before a start, for example in .env; `start` generates them for the sample agent alone',
  ];
}
