import { dirname, join, resolve } from 'node:path';

/** Relative paths are resolved against the working directory. */
export interface AgentConfig {
  manifestPath: string;
  /** Default: `documents` beside the manifest. */
  documentsPath: string;
  /** Whether DOCUMENTS is set: the folder is used whatever the manifest names. */
  isFolderGiven: boolean;
  /** Folder of the manifest's secret bundles; null: their variables are in the environment. */
  secretsPath: string | null;
  /** Public address of this deployment; a manifest with another platform address has its documents and model calls there. Null: not known. */
  publicBaseUrl: string | null;
}

interface AgentSettings {
  MANIFEST: string;
  DOCUMENTS?: string | undefined;
  SECRETS_DIR?: string | undefined;
  PUBLIC_BASE_URL?: string | undefined;
}

export function agentConfigOf(settings: AgentSettings): AgentConfig {
  const { MANIFEST: manifest, DOCUMENTS: documents, SECRETS_DIR: secrets, PUBLIC_BASE_URL: publicBaseUrl } = settings;
  const manifestPath = resolve(manifest);
  const documentsPath = documents === undefined ? join(dirname(manifestPath), 'documents') : resolve(documents);
  return {
    manifestPath,
    documentsPath,
    isFolderGiven: documents !== undefined,
    secretsPath: secrets === undefined ? null : resolve(secrets),
    publicBaseUrl: publicBaseUrl ?? null,
  };
}
