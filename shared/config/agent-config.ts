import { dirname, join, resolve } from 'node:path';

/** Relative paths are resolved against the working directory. */
export interface AgentConfig {
  manifestPath: string;
  /** Default: `documents` beside the manifest. */
  documentsPath: string;
  /** Public address of this deployment; a manifest with another platform address is refused. Null: not known. */
  publicBaseUrl: string | null;
}

interface AgentSettings {
  MANIFEST: string;
  DOCUMENTS?: string | undefined;
  PUBLIC_BASE_URL?: string | undefined;
}

export function agentConfigOf({ MANIFEST: manifest, DOCUMENTS: documents, PUBLIC_BASE_URL: publicBaseUrl }: AgentSettings): AgentConfig {
  const manifestPath = resolve(manifest);
  const documentsPath = documents === undefined ? join(dirname(manifestPath), 'documents') : resolve(documents);
  return { manifestPath, documentsPath, publicBaseUrl: publicBaseUrl ?? null };
}
