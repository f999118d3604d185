/** An access key of AWS. */
export interface AwsCredentials {
  accessKeyId: string;
  secretAccessKey: string;
  /** Of temporary credentials; null: none. */
  sessionToken: string | null;
}

const MAX_CHARS = 256 * 1024;
const SECTION = /^\[\s*(?:profile\s+)?([^\]]*?)\s*\]/;
const SETTING = /^([a-z_]+)\s*=\s*(.*?)\s*$/i;
/** How ids of temporary keys begin. */
const TEMPORARY = 'ASIA';
/** Characters that a header allows. */
const PLAIN = /^[\x21-\x7e]+$/;

/** The credentials of a profile in AWS's shared credentials file; null: it has none that are complete. */
export function sharedCredentials(text: string, profile: string): AwsCredentials | null {
  const settings = new Map<string, string>();
  let isOurs = false;
  for (const line of text.slice(0, MAX_CHARS).split(/\r?\n/)) {
    const section = SECTION.exec(line)?.[1];
    if (section !== undefined) isOurs = section === profile;
    const [, name, value] = (isOurs && SETTING.exec(line)) || [];
    if (name !== undefined && value !== undefined) settings.set(name.toLowerCase(), value);
  }
  const accessKeyId = settings.get('aws_access_key_id') ?? '';
  const secretAccessKey = settings.get('aws_secret_access_key') ?? '';
  const sessionToken = settings.get('aws_session_token') || null;
  if (![accessKeyId, secretAccessKey, sessionToken ?? 'none'].every((value) => PLAIN.test(value))) return null;
  // Temporary credentials are none without their token: the file is still written.
  if (accessKeyId.startsWith(TEMPORARY) && sessionToken === null) return null;
  return { accessKeyId, secretAccessKey, sessionToken };
}
