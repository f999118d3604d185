import { agentConfigOf } from '#shared/config/agent-config.ts';
import { agentDocuments } from '#shared/config/agent-documents.ts';
import type { Credential } from '#shared/config/check-credentials.ts';
import { type LoadedBundle, loadBundle } from '#shared/config/load-bundle.ts';
import { readSecrets } from '#shared/config/secret-bundles.ts';
import type { Environment } from '#shared/config/secret-ref.ts';
import { settingsOf } from '#shared/config/setting-table.ts';
import { readSettings } from '#shared/config/settings.ts';

const { SECRETS_DIR, PUBLIC_BASE_URL } = settingsOf('operator');

/** Conversations of the operator call neither tools nor receivers, and have no API: those of the models are checked where they are used. */
const CREDENTIALS: readonly Credential[] = [];

interface AgentFiles {
  manifest: string;
  /** Null: `documents` beside the manifest. */
  documents: string | null;
}

/** An agent whose conversations are played here. @throws `config.invalid` listing every error */
export async function loadAgent({ manifest, documents }: AgentFiles, environment: Environment): Promise<{ bundle: LoadedBundle; ofAgent: Environment }> {
  const settings = readSettings({ SECRETS_DIR, PUBLIC_BASE_URL }, environment);
  const config = agentConfigOf({ ...settings, MANIFEST: manifest, ...(documents !== null && { DOCUMENTS: documents }) });
  const { manifestPath, secretsPath } = config;
  const secrets = await readSecrets({ manifestPath, secretsPath, environment });
  const ofAgent = secrets.atStart;
  const source = agentDocuments({ ...config, environment: ofAgent, database: null });
  return { bundle: await loadBundle({ manifestPath, documents: source, environment: ofAgent, credentials: CREDENTIALS }), ofAgent };
}
