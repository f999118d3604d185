import { dirname, join, resolve } from 'node:path';

/** Where an agent's files are. Relative paths are taken from the folder that the process was started in. */
export interface AgentPaths {
  manifestPath: string;
  /** Beside the manifest unless it is given. */
  documentsPath: string;
}

export function agentPathsOf({ MANIFEST: manifest, DOCUMENTS: documents }: { MANIFEST: string; DOCUMENTS?: string | undefined }): AgentPaths {
  const manifestPath = resolve(manifest);
  return { manifestPath, documentsPath: documents === undefined ? join(dirname(manifestPath), 'documents') : resolve(documents) };
}
