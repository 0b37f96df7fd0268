/** The frame of all pages: navigation, banner, content. */
import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { API } from "./base";
import { Button } from "./components/button";
import { Dialog } from "./components/dialog";
import { PAGES } from "./pages";
import { hrefOf, Link, place } from "./router";
import { config, identity, may, signOut } from "./session";

const isMenuOpen = signal(false);

export function Layout({ children }: { children: ComponentChildren }): JSX.Element {
  return (
    <div class="layout">
      <a class="skip-link" href="#content" onClick={skipToContent}>
        Skip to the content
      </a>
      <header class="top">
        <Link to="/" class="brand" aria-label="Stint, to the start">
          <Mark /> Stint
        </Link>
        <Banner />
        <Button kind="quiet" class="menu-button" aria-haspopup="dialog" onClick={() => (isMenuOpen.value = true)}>
          Menu
        </Button>
      </header>
      <nav class="side" aria-label="Pages">
        <Navigation />
      </nav>
      <Dialog title="Menu" kind="drawer" isOpen={isMenuOpen.value} onClose={() => (isMenuOpen.value = false)}>
        <nav aria-label="Pages">
          <Navigation />
        </nav>
        <Scopes />
        <Button onClick={() => (isMenuOpen.value = false)}>Close</Button>
      </Dialog>
      <main id="content" tabIndex={-1}>
        {children}
      </main>
    </div>
  );
}

function skipToContent(event: Event): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function Navigation(): JSX.Element {
  const offered = PAGES.filter(({ isListed, scope }) => isListed && (!scope || may(scope)));
  return (
    <ul class="nav">
      {offered.map(({ pattern, title }) => (
        <li key={pattern}>
          <Link
            to={pattern}
            aria-current={isWithin(pattern) ? "page" : undefined}
            onClick={() => (isMenuOpen.value = false)}
          >
            {title}
          </Link>
        </li>
      ))}
      <li>
        {(config.value?.local || config.value?.auth === "none") && (
          <a href={new URL("docs", API).href} target="_blank" rel="noopener noreferrer">
            API reference
          </a>
        )}
      </li>
    </ul>
  );
}

function isWithin(pattern: string): boolean {
  return (
    hrefOf(place.value.path) === hrefOf(pattern) || (pattern !== "/" && place.value.path.startsWith(`${pattern}/`))
  );
}

/** Who is signed in, and what this credential may do. */
function Banner(): JSX.Element {
  const isOpen = config.value?.auth === "none";
  const known = identity.value;
  return (
    <div class="banner">
      {isOpen && (
        <span>{config.value?.local ? "Local, without sign-in" : "Without sign-in: everyone may use this API"}</span>
      )}
      {!isOpen && known && (
        <span>
          Tenant <strong>{known.tenant}</strong>
        </span>
      )}
      <Scopes />
      {!isOpen && (
        <Button kind="quiet" onClick={signOut}>
          Sign out
        </Button>
      )}
    </div>
  );
}

/** What the credential may do. */
function Scopes(): JSX.Element | null {
  const scopes = identity.value?.scopes;
  if (!scopes) return null;
  return (
    <ul class="scopes" aria-label="Scopes of this key">
      {scopes.map((scope) => (
        <li key={scope} class="badge badge-plain">
          {scope}
        </li>
      ))}
    </ul>
  );
}

export function Mark(): JSX.Element {
  return (
    <svg class="mark" viewBox="0 0 16 16" width="20" height="20" aria-hidden="true">
      <rect width="16" height="16" rx="4" />
      <path d="M4 5h8M4 8h5M4 11h7" />
    </svg>
  );
}
