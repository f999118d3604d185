/** The address of the manifest's platform, without a slash at its end; null: it is this deployment. @param publicBaseUrl null: not known */
export function foreignPlatformOf(baseUrl: string | null, publicBaseUrl: string | null): string | null {
  if (baseUrl === null || !URL.canParse(baseUrl)) return null;
  const address = withoutSlash(baseUrl);
  return publicBaseUrl !== null && address === withoutSlash(publicBaseUrl) ? null : address;
}

function withoutSlash(url: string): string {
  return new URL(url).href.replace(/\/+$/, '');
}
