import type { ComponentChildren, JSX } from "preact";

/** A link to an address that others wrote. Anything but http and https is text. */
export function ExternalLink({ url, children }: { url: string; children: ComponentChildren }): JSX.Element {
  if (!/^https?:\/\//i.test(url)) return <span>{children}</span>;
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  );
}
